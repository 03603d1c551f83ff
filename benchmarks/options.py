"""The options of ``seed-bench run``: flags, a configuration file, and how both become a :class:`RunConfig`.

Flags that were not given are absent from the parsed namespace, so that a file can fill them and ``--resume`` can insist
on being alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from seed_envs.command_line import key_and_value
from seed_envs.errors import close_matches
from seed_envs.redaction import HIDDEN, learn, redact

from .config import AgentSettings, RunConfig
from .errors import ConfigInvalid
from .identity import AGENT_PLACE, PLACE, URL
from .suites import find_suite

EXAMPLES = """\
examples:
  seed-bench run --suite alfworld/mini --agent oracle
  seed-bench run --suite alfworld/valid_seen --agent hf:./model --batch-size 64 --repeats 3
  seed-bench run --suite webshop/mini --agent openai:qwen3@http://127.0.0.1:8000/v1 --requests-per-minute 300
  seed-bench run --suite sokoban/mini --agent random --num-workers 4 --timeout 30
  seed-bench run --suite my_suite.json --agent python:my_module:my_agent --dry-run
  seed-bench run --suite alfworld/valid_seen --agent hf:./model --shard 2/8 --out part_2
  seed-bench run --config run.json --seed 1
  seed-bench run --resume runs/alfworld_mini--oracle--20260101-120000
"""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare every flag of ``run``, in groups."""
    what = parser.add_argument_group("what is played")
    what.add_argument("--suite", help="name from `seed-bench ls`, or a .json file")
    what.add_argument("--limit", type=count_or_share, help="number of tasks, or a share below 1; a fixed mixed sample")
    what.add_argument("--repeats", type=int, help="episodes per task (default 1)")
    what.add_argument("--seed", type=int, help="root of every seed (default 0)")
    what.add_argument("--max-steps", type=int, help="step limit (default: the profile's)")
    what.add_argument("--profile", help="prompt profile (default: the suite's)")
    what.add_argument("--env-arg", action="append", metavar="KEY=VALUE", help="argument of the environment, JSON value")

    who = parser.add_argument_group("who plays")
    who.add_argument("--agent", help="oracle | random | rule | hf:PATH | openai:MODEL@URL | python:MODULE:FUNCTION")
    who.add_argument("--temperature", type=float, help="0 is greedy (default 0.4, as the paper evaluates)")
    who.add_argument("--top-p", type=float, help="nucleus (default 1)")
    who.add_argument("--max-new-tokens", type=int, help="longest reply (default 512)")
    who.add_argument("--max-prompt-tokens", type=int, help="longer prompts end the episode as context_overflow")
    who.add_argument("--thinking", type=on_or_off, metavar="on|off", help="thinking switch of the chat template")
    who.add_argument("--skill-prompt", metavar="FILE", help="skills in the prompt: text, or .json by task type")
    who.add_argument("--device", help="for hf: cpu, cuda, ... (default: a GPU if there is one)")
    who.add_argument("--dtype", help="for hf: number format of the weights (default: the model's; float32 on a CPU)")

    line = parser.add_argument_group("endpoint (openai:)")
    line.add_argument("--requests-per-minute", type=float, help="rate limit (default none)")
    line.add_argument("--retries", type=int, help="further attempts after a failure that may pass (default 6)")
    line.add_argument("--request-timeout", type=float, metavar="SECONDS", help="give up an answer (default 120)")
    line.add_argument("--price-prompt", type=float, help="price of a million prompt tokens, for the cost count")
    line.add_argument("--price-completion", type=float, help="price of a million completion tokens")
    line.add_argument("--api-key-env", metavar="NAME", help="variable with the key (default OPENAI_API_KEY)")

    line.add_argument("--url", help="address up to /v1; also with --resume, for a server that has moved")
    line.add_argument("--request-arg", action="append", metavar="KEY=VALUE|drop", help="field of every request, JSON "
                      "value, or drop to leave it out, e.g. max_completion_tokens=512, seed=drop")  # fmt: skip

    how = parser.add_argument_group("how it runs")
    how.add_argument("--num-workers", type=int, help="processes for environments; 0 plays in this one (default 0)")
    how.add_argument("--batch-size", type=int, help="environments at once (default: 16 for models, else 1)")
    how.add_argument("--timeout", type=float, metavar="SECONDS", help="longest turn; needs --num-workers")
    how.add_argument("--fail-on-error", nargs="?", const=1, type=count_or_share, metavar="N", help="stop at N failed "
                     "episodes, or at a share below 1 (alone: at the first)")  # fmt: skip
    how.add_argument("--max-equal-failures", type=int, metavar="K", help="stop when K episodes in a row fail for the "
                     "same reason; 0 never (default 20)")  # fmt: skip
    how.add_argument(
        "--blind", choices=["blank", "shuffle"], help="take the pictures away, or show those of another task"
    )
    how.add_argument("--shard", type=shard, metavar="I/N", help="play the I-th of N parts; join them with `merge`")
    how.add_argument("--executor", choices=["local", "ray"], help="where workers live (default local)")
    how.add_argument("--ray-address", help="cluster to join, e.g. auto (default: a local one)")
    how.add_argument("--ray-gpus", type=float, help="GPUs per Ray worker (default 0)")

    where = parser.add_argument_group("folders and files")
    where.add_argument("--out", type=Path, metavar="DIR", help="new folder (default runs/SUITE--AGENT--DATE)")
    where.add_argument("--resume", type=Path, metavar="DIR", help="continue a run; takes only options that "
                       "say where and how patiently it is played")  # fmt: skip
    where.add_argument("--accept-change", action="append", metavar="FIELD", help="with --resume: go on although this "
                       "has changed since the run began")  # fmt: skip
    where.add_argument("--config", type=Path, metavar="FILE", help=".json, .toml or .yaml with these options as keys")
    where.add_argument("--dry-run", action="store_true", help="check, show what would be played, then stop")
    where.add_argument("--no-preflight", action="store_true", help="skip the checks before the first episode: folder, "
                       "first task, pictures, length of the prompt, one reply")  # fmt: skip
    where.add_argument("--quiet", action="store_true", help="no progress line")


def with_file(given: dict[str, Any], parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Fill options that were not given from ``--config``.

    Args:
        given: Options from the command line.
        parser: Declares names and types.

    Raises:
        ConfigInvalid: For a file that cannot be read, an unknown key, or a value of the wrong type.
    """
    if "config" not in given:
        return given
    actions = {action.dest: action for action in parser._actions if action.dest not in ("help", "config", "resume")}
    filled, record = {}, _read_file(given["config"])
    learn(record)
    for key, value in record.items():
        name = key.replace("-", "_")
        if name not in actions:
            raise ConfigInvalid(f"{given['config']}: unknown option {key!r}.{close_matches(name, actions)}")
        filled[name] = _convert(actions[name], value, f"{given['config']}: {key}")
    return {**filled, **given}


def resolve(options: dict[str, Any]) -> RunConfig:
    """The configuration that options describe.

    Raises:
        ConfigInvalid: When suite or agent are missing, or options contradict each other.
        UnknownSuite: With close matches.
    """
    for name in ("suite", "agent"):
        if name not in options:
            raise ConfigInvalid(f"--{name} is missing; see `seed-bench run --help` and `seed-bench ls`")
    suite = find_suite(options["suite"])
    of_agent = {name for name in AgentSettings.__dataclass_fields__ if name != "spec"}
    of_run = {
        name for name in RunConfig.__dataclass_fields__ if name not in ("suite", "agent", "env_kwargs", "profile")
    }
    settings = AgentSettings(
        at_url(options["agent"], options.get("url")),
        request_args=dict(_key_value("--request-arg", text) for text in options.get("request_arg", [])),
        **{key: value for key, value in options.items() if key in of_agent},
    )
    return RunConfig(
        suite,
        settings,
        profile=options.get("profile", suite.profile),
        env_kwargs=dict(_key_value("--env-arg", text) for text in options.get("env_arg", [])),
        **{key: value for key, value in options.items() if key in of_run},
    )


def give_back(stored: RunConfig, given: dict[str, Any], folder: Path) -> RunConfig:
    """The configuration of a run that goes on, with the secrets that its folder does not hold.

    Args:
        stored: As it was read from the folder.
        given: ``agent`` and ``env_arg`` from the command line.
        folder: The run, for the message.

    Raises:
        ConfigInvalid: When a hidden value is missing, or anything else than such a value is given.
    """
    arguments = {**stored.env_kwargs, **dict(_key_value("--env-arg", text) for text in given.get("env_arg", []))}
    agent = dataclasses.replace(stored.agent, spec=given.get("agent", stored.agent.spec))
    whole = dataclasses.replace(stored, agent=agent, env_kwargs=arguments)
    if redact(whole.to_json()) != redact(stored.to_json()):
        raise ConfigInvalid(
            "--resume continues the run as it began: beside it, --agent and --env-arg only give back what its folder "
            "hides, unchanged"
        )
    hidden = [name for name, value in arguments.items() if HIDDEN in json.dumps(value)]
    missing = [f"--env-arg {name}=..." for name in hidden] + ["--agent ..."] * (HIDDEN in agent.spec)
    if missing:
        raise ConfigInvalid(
            "a run's folder keeps no passwords; give the value again: "
            f"seed-bench run --resume {folder} {' '.join(missing)}"
        )
    return whole


def moved(stored: RunConfig, given: dict[str, Any]) -> RunConfig:
    """The configuration of a run that goes on in another place: a server that has moved, more patience, more workers.

    Args:
        stored: What the run began with.
        given: Options by name.

    Raises:
        ConfigInvalid: For an option that could change a score.
    """
    others = sorted(given.keys() - PLACE - AGENT_PLACE - {"url"})
    if others:
        named = ", ".join("--" + name.replace("_", "-") for name in others)
        raise ConfigInvalid(
            f"--resume continues the run as it began; {named} could change its scores. Start a new run, or give only "
            f"{', '.join('--' + name.replace('_', '-') for name in sorted(PLACE | AGENT_PLACE | {'url'}))}"
        )
    of_agent = {name: value for name, value in given.items() if name in AGENT_PLACE}
    agent = dataclasses.replace(stored.agent, spec=at_url(stored.agent.spec, given.get("url")), **of_agent)
    return dataclasses.replace(stored, agent=agent, **{name: given[name] for name in given.keys() & PLACE})


def at_url(spec: str, url: str | None) -> str:
    """An agent's spec with another address.

    Raises:
        ConfigInvalid: For an agent without an address.
    """
    if url is None:
        return spec
    if not spec.startswith("openai:"):
        raise ConfigInvalid(f"--url {url}: agent {spec!r} has no address; only openai:MODEL has one")
    return f"{re.sub(URL, '', spec)}@{url}"


def default_out(config: RunConfig) -> Path:
    """``runs/SUITE--AGENT--DATE``."""
    date = datetime.now().strftime("%Y%m%d-%H%M%S")
    index, count = config.shard
    parts = [_slug(config.suite.name), _slug(config.agent.spec), date, *([f"{index}of{count}"] if count > 1 else [])]
    return Path("runs") / "--".join(parts)


def count_or_share(text: str) -> int | float:
    """A whole number above 0, or a share below 1."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor a share") from None
    if value.is_integer() and value >= 1:
        return int(value)
    if 0 < value < 1:
        return value
    raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number above 0 or a share below 1")


def megabytes(text: str) -> float:
    """A finite size, 0 or more."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size in megabytes, 0 or more")
    return value


def on_or_off(text: str) -> bool:
    """``on`` or ``off``."""
    if text.lower() in ("on", "true", "off", "false"):
        return text.lower() in ("on", "true")
    raise argparse.ArgumentTypeError(f"{text!r}: expected on or off")


def shard(text: str) -> tuple[int, int]:
    """``I/N``."""
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: expected I/N, e.g. 2/8")
    return int(found.group(1)), int(found.group(2))


def _key_value(option: str, text: str) -> tuple[str, Any]:
    try:
        return key_and_value(text)
    except argparse.ArgumentTypeError as error:
        raise ConfigInvalid(f"{option} {error}") from None


def _convert(action: argparse.Action, value: Any, where: str) -> Any:
    """A file's value, read as the flag's text would be."""
    if isinstance(action, argparse._StoreTrueAction):
        if not isinstance(value, bool):
            raise ConfigInvalid(f"{where}: expected true or false, got {value!r}")
        return value
    if isinstance(action, argparse._AppendAction):
        if isinstance(value, dict):
            return [f"{key}={json.dumps(item)}" for key, item in value.items()]
        raise ConfigInvalid(f"{where}: expected a mapping, got {value!r}")
    text = {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
    try:
        converted = action.type(text) if callable(action.type) else text
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise ConfigInvalid(f"{where}: {value!r} is not accepted ({error})") from error
    if action.choices is not None and converted not in action.choices:
        raise ConfigInvalid(f"{where}: {value!r} is not one of {list(action.choices)}")
    return converted


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix in (".yaml", ".yml"):
            record = _read_yaml(text)
        elif path.suffix == ".toml":
            record = _read_toml(text)
        else:
            record = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigInvalid(f"configuration file {path}: {error}") from error
    if not isinstance(record, dict):
        raise ConfigInvalid(f"configuration file {path}: expected options as keys, got {type(record).__name__}")
    return record


def _read_yaml(text: str) -> Any:
    from seed_envs.errors import require

    require("yaml", "bench", "a YAML configuration file")
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _read_toml(text: str) -> Any:
    try:
        import tomllib  # novermin
    except ModuleNotFoundError as error:
        raise ValueError(".toml needs Python 3.11; use .json") from error
    return tomllib.loads(text)


def _slug(text: str) -> str:
    tail = text.rstrip("/").split("://")[0] if "@" in text else text.rstrip("/")
    return re.sub(r"[^A-Za-z0-9.]+", "_", tail).strip("_")[-60:]
