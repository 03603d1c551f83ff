"""A graph of LangGraph plays, a model and its tools in turn; any OpenAI-compatible server does.

Run: python examples/09_langgraph.py URL MODEL [ENV_ID]   (pip install 'seed-envs[agents]')
"""

from __future__ import annotations

import os
import sys

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from seed_envs.integrations.episode import Episode
from seed_envs.integrations.langgraph import langchain_tools

if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    url, name, env_id = (*sys.argv[1:], "seed/WebShop-v0")[:3]
    episode = Episode(env_id)
    episode.reset(seed=0)
    tools = langchain_tools(episode)
    model = ChatOpenAI(model=name, base_url=url, api_key=os.environ.get("SEED_API_KEY", "none")).bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    task = f"Solve the task by calling the tools.\n\n{episode.view()}"
    graph.compile().invoke({"messages": [("user", task)]}, {"recursion_limit": 100})
    print(f"{len(episode.actions)} actions, score {episode.score:.2f}, success {episode.success}")
