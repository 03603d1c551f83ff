"""An agent loop of one's own over OpenAI's tool calls; any compatible server does.

Run: python examples/07_openai_tools.py URL MODEL [ENV_ID]   (pip install 'seed-envs[agents]')
"""

from __future__ import annotations

import os
import sys
from typing import Any

from openai import OpenAI

from seed_envs.integrations.episode import Episode

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    url, model, env_id = (*sys.argv[1:], "seed/WebShop-v0")[:3]
    client = OpenAI(base_url=url, api_key=os.environ.get("SEED_API_KEY", "none"))
    episode = Episode(env_id)
    episode.reset(seed=0)
    messages: list[Any] = [{"role": "user", "content": f"Solve the task by calling the tools.\n\n{episode.view()}"}]
    tools: list[Any] = [tool.schema() for tool in episode.tools]
    while not episode.done:
        said: Any = client.chat.completions.create(model=model, messages=messages, tools=tools).choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        if not said.tool_calls:
            break
        for call in said.tool_calls:
            seen = episode.call(call.function.name, call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": seen})
    print(f"{len(episode.actions)} actions, score {episode.score:.2f}, success {episode.success}")
