"""The harness judges an agent of your own, a plain function, on a fixed list of tasks.

Run: python examples/03_evaluate.py NEW_FOLDER
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from seed_benchmarks.config import AgentSettings, RunConfig
from seed_benchmarks.markdown import summary_markdown
from seed_benchmarks.runner import start_run
from seed_benchmarks.suites import find_suite
from seed_envs import Request

NUMBERS = {"ace": 1, "jack": 10, "queen": 10, "king": 10}


def only_sums(request: Request) -> str:
    """Answer as a model would, with text: this player can add two cards, and never thinks of multiplying them."""
    cards, formula = request.context.observation.split("\n")[:2]
    first, second = (NUMBERS.get(name) or int(name) for name in re.findall(r"(\w+) of", cards))
    wanted = f"{first} + {second} =".split()
    written = len(re.findall(r"\d+|[+*=]", formula))
    return json.dumps({"thoughts": f"{first} and {second}", "action": wanted[min(written, 3)]})


def main() -> None:
    """Play every task of a suite and print the numbers."""
    config = RunConfig(
        find_suite("ezpoints/mini_text"), AgentSettings("python:__main__:only_sums"), profile="strict-text"
    )
    result = start_run(config, Path(sys.argv[1]), command=sys.argv)
    print(summary_markdown(result.summary))


if __name__ == "__main__":
    main()
