"""Build the generated pages: docs/environments/*.md from the environments' docstrings and tables, docs/metrics.md.

python scripts/build_env_docs.py           write the pages
python scripts/build_env_docs.py --check   exit 1 when a page on disk is not what would be written
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

from seed_envs.profiles import Profile
from seed_envs.registration import ENVIRONMENTS, EnvRow, load_attribute
from seed_trainer.diagnostics import markdown as metrics_page

FOLDER = Path(__file__).resolve().parent.parent / "docs"
NOTE = "<!-- Written by scripts/build_env_docs.py from the class docstring; edit that, not this page. -->"


def page_name(row: EnvRow) -> str:
    """File name of an environment's page: the class name in lower case."""
    return row.entry_point.rpartition(":")[2].removesuffix("Env").lower() + ".md"


def profile_table(profiles: dict[str, Profile]) -> str:
    """The profiles of an environment as a Markdown table."""
    lines = [
        "| profile | steps | history | style | invalid action | reward | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, profile in profiles.items():
        history = "all" if profile.history is None else str(profile.history)
        lines.append(
            f"| `{name}` | {profile.max_steps or 'registered'} | {history} | {profile.style} | "
            f"-{profile.invalid_penalty:g} | x {profile.reward_scale:g} | {profile.source} |"
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
            f"| `{other.id}` | {other.max_episode_steps} | "
            f"{', '.join(f'`{key}={value!r}`' for key, value in other.kwargs.items())} |"
            for other in ids
        )
        pages[name] = (
            f"{NOTE}\n\n# {env_class.__name__}\n\n{inspect.cleandoc(env_class.__doc__ or '')}\n\n"
            f"## Ids\n\n| id | step limit | arguments |\n|---|---|---|\n{listed}\n\n"
            f"## Profiles\n\n{profile_table(load_attribute(row.profiles))}\n"
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
