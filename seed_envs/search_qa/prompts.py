"""Prompts and profiles of Search QA: Search-R1's conversation, and verl-agent's fresh prompt per turn.

The Search-R1 prompt is the original's text (Apache-2.0, PeterGriffinJin/Search-R1): models were trained on it. The
windowed prompt has the parts of verl-agent's in this package's own words.
"""

from __future__ import annotations

from dataclasses import dataclass

from seed_envs.markers import defuse
from seed_envs.profiles import ActionFormat, Profile, PromptTemplate, TurnContext
from seed_envs.tools import Tool

_SEARCH_R1_RULES = (
    "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get new "
    "information. After reasoning, if you find you lack some knowledge, you can call a search engine by <search> query "
    "</search> and it will return the top searched results between <information> and </information>. You can search as "
    "many times as your want. If you find no further external knowledge needed, you can directly provide the answer "
    "inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>. "
)
SEARCH_R1_PROMPT = _SEARCH_R1_RULES + "Question: {question}\n"
"""The user message of Search-R1."""

_WHOLE = ActionFormat(kind="raw", reply="<think>{thought}</think>\n{action}")
_BLOCK = ActionFormat(kind="blocks", tags=("search", "answer"), reply="<think>{thought}</think>\n{action}")


@dataclass(frozen=True)
class StepHistory(PromptTemplate):
    """A template whose history shows each action with the observation that followed it."""

    def _history(self, turn: TurnContext) -> str:
        actions = [action for _, action in turn.history]
        seen = [observation for observation, _ in turn.history[1:]] + [turn.observation]
        first = turn.step - len(turn.history) + 1
        return self.history_separator.join(
            self.history_item.format(action=defuse(action), observation=defuse(observation).strip(), number=first + i)
            for i, (action, observation) in enumerate(zip(actions, seen, strict=True))
        )


_ROLE = "You answer questions with care, one step at a time.\nYour question: {goal}\n{skill}\n"
_CHOICES = (
    "It is your turn now. Think first, inside <think> </think>. Then do exactly one of two things:\n"
    "(1) If something is still missing, search for it: <search> your query </search>.\n"
    "(2) If you can answer with confidence, give a short final answer: <answer> </answer>, for example "
    "<answer>Beijing</answer>.\n"
)
_WINDOW = StepHistory(
    first=f"{_ROLE}{_CHOICES}",
    turn=(
        f"{_ROLE}You have taken {{step}} step(s) so far. Your searches and the passages they found:\n{{history}}\n\n"
        f"{_CHOICES}"
    ),
    history_item="Step {number}:{action} {observation}",
)

PROFILES: dict[str, Profile] = {
    "paper": Profile(
        name="paper",
        template=_WINDOW,
        action_format=_BLOCK,
        history=4,
        invalid_penalty=0.01,
        env_kwargs={"protocol": "verl-agent", "max_turns": 4},
        source="SEED paper, search setting: verl-agent's protocol, four turns, four history pairs",
    ),
    "search-r1": Profile(
        name="search-r1",
        template=PromptTemplate(first=_SEARCH_R1_RULES + "Question: {goal}\n{skill}", turn="{observation}"),
        action_format=_WHOLE,
        history=0,
        style="growing",
        env_kwargs={"protocol": "search-r1", "max_turns": 4},
        source="Search-R1: one conversation, four search turns and a last answer",
    ),
    "search-r1-window": Profile(
        name="search-r1-window",
        template=_WINDOW,
        action_format=_WHOLE,
        history=None,
        env_kwargs={"protocol": "search-r1", "max_turns": 4},
        source="this package: Search-R1's rules with a fresh prompt per turn",
    ),
}
"""How language models are put before the environment."""

TOOLS: tuple[Tool, ...] = (
    Tool("search", "Search the encyclopedia for passages.", "query", "The search query.", "<search>{query}</search>"),
    Tool(
        "answer",
        "Give the final answer; this ends the episode.",
        "answer",
        "A name, a date or a few words.",
        "<answer>{answer}</answer>",
    ),
)
"""What the protocol's blocks do, as functions."""
