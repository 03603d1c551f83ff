"""Build the generated pages: docs/environments/*.md from the environments' docstrings and tables, docs/metrics.md.

python scripts/build_env_docs.py           write the pages
python scripts/build_env_docs.py --check   exit 1 when a page on disk is not what would be written
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seed_envs.profiles import Profile, profile_table
from seed_envs.registration import ENVIRONMENTS, EnvRow, load_attribute
from seed_trainer.watching.diagnostics import markdown as metrics_page

FOLDER = Path(__file__).resolve().parent.parent / "docs"
NOTE = "<!-- Written by scripts/build_env_docs.py from the class docstring; edit that, not this page. -->"


def page_name(row: EnvRow) -> str:
    """File name of an environment's page: the class name in lower case."""
    return row.entry_point.rpartition(":")[2].removesuffix("Env").lower() + ".md"


def description(env_class: type[Any]) -> str:
    """The class docstring as a page: cross references as code, the list of arguments below its heading.

    Where the heading has no list of its own, it is taken from the ``Args`` of the class, or else of ``__init__``.
    """
    text, found = split_arguments(env_class, inspect.getdoc(env_class) or "")
    listed = found or split_arguments(env_class, inspect.getdoc(env_class.__init__) or "")[1]
    before, heading, after = text.partition("## Arguments\n")
    own, separator, rest = after.partition("\n## ")
    if listed and "* ``" not in own:
        text = f"{before}{heading}{own.rstrip()}\n\n{listed}\n{separator}{rest}"
    return re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text)


def split_arguments(env_class: type[Any], docstring: str) -> tuple[str, str]:
    """A docstring without its ``Args`` section, and that section as a list with types and defaults."""
    head, found, block = docstring.partition("\nArgs:\n")
    block, _, tail = block.partition("\n\n")
    parameters = inspect.signature(env_class.__init__).parameters

    def item(match: re.Match[str]) -> str:
        parameter = parameters.get(match[1])
        if parameter is None or parameter.default is inspect.Parameter.empty:
            return f"* ``{match[1]}``: "
        return f"* ``{match[1]}`` (``{parameter.annotation}``, default ``{parameter.default!r}``): "

    entries = re.sub(r"^    (\*{0,2}\w+): ", item, block, flags=re.MULTILINE)
    return head.rstrip() + (f"\n\n{tail}" if found and tail else ""), re.sub(r"\n {8}", "\n  ", entries)


def picture(name: str) -> str:
    """The environment's picture below the title, where there is one."""
    for file in (f"{name}.gif", f"{name}.png"):
        if (FOLDER / "images" / file).is_file():
            return f"![{name}](../images/{file})\n\n"
    return ""


def table_of(profiles: Mapping[str, Profile]) -> str:
    """The profiles of an environment as a Markdown table."""
    lines = [
        "| profile | steps | history | style | invalid action | reward | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, profile in profiles.items():
        history = "all" if profile.history is None else str(profile.history)
        lines.append(
            f"| `{name}` | {profile.max_steps or 'the default'} | {history} | {profile.style} | "
            f"{-profile.invalid_penalty or 0:g} | x {profile.reward_scale:g} | {profile.source} |"
        )
    return "\n".join(lines)


def build_pages() -> dict[str, str]:
    """All pages by their place below docs. Ids that share a class share a page."""
    pages = {"metrics.md": metrics_page()}
    for row in ENVIRONMENTS:
        name = f"environments/{page_name(row)}"
        if name in pages:
            continue
        env_class = load_attribute(row.entry_point)
        ids = [other for other in ENVIRONMENTS if other.entry_point == row.entry_point]
        listed = "\n".join(
            f"| `{other.id}` | {other.max_episode_steps or 'by its arguments'} | "
            f"{', '.join(f'`{key}={value!r}`' for key, value in other.kwargs.items())} |"
            for other in ids
        )
        pages[name] = (
            f"{NOTE}\n\n# {env_class.__name__}\n\n{picture(Path(name).stem)}{description(env_class)}\n\n"
            f"## Ids\n\n| id | step limit | arguments |\n|---|---|---|\n{listed}\n\n"
            f"## Profiles\n\n{table_of(profile_table(row.id))}\n"
        )
    return pages


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with what is on disk and write nothing")
    check = parser.parse_args().check
    stale = []
    for name, text in build_pages().items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    if stale:
        print(("stale: " if check else "written: ") + ", ".join(stale))
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
