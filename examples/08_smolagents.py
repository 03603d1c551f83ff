"""A ToolCallingAgent of smolagents plays; any OpenAI-compatible server does.

Run: python examples/08_smolagents.py URL MODEL [ENV_ID]   (pip install 'seed-envs[agents]')
"""

from __future__ import annotations

import os
import sys

from smolagents import OpenAIServerModel, ToolCallingAgent

from seed_envs.integrations.episode import Episode
from seed_envs.integrations.smolagents import smol_tools

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    url, name, env_id = (*sys.argv[1:], "seed/WebShop-v0")[:3]
    model = OpenAIServerModel(name, api_base=url, api_key=os.environ.get("SEED_API_KEY", "none"))
    episode = Episode(env_id)
    episode.reset(seed=0)
    agent = ToolCallingAgent(tools=smol_tools(episode), model=model, max_steps=30, verbosity_level=0)
    agent.run(f"Solve the task by calling the tools, then give your final answer.\n\n{episode.view()}")
    print(f"{len(episode.actions)} actions, score {episode.score:.2f}, success {episode.success}")
