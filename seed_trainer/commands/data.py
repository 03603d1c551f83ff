"""``seed-train data``: stage 1 data, or a static skill library."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seed_envs.errors import DependencyMissing, close_matches
from seed_envs.preflight import check_folder
from seed_envs.redaction import redact
from seed_envs.tables import number
from seed_trainer.errors import UserError
from seed_trainer.settings.arguments import RECIPE_HELP, CheckArguments, EnvArguments, json_object
from seed_trainer.settings.options import option
from seed_trainer.settings.quick import fields_of_rl
from seed_trainer.settings.recipes import DATA_RECIPES
from seed_trainer.settings.resolve import resolve

POLICIES = ("oracle", "rule", "random")
TARGETS = ("skills", "actions", "both")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
IDENTITY = (
    *("env_id", "env_profile", "env_kwargs", "env_max_steps", "policy", "split", "tasks", "repeats", "temperature"),
    *("max_turn_length", "max_prompt_length", "seed"),
)
"""Arguments that decide which episodes are played; a folder holds the episodes of one choice of them."""


@dataclass
class DataArguments(EnvArguments, CheckArguments):
    """What to play, who annotates, where to write."""

    recipe: str = option("paper", RECIPE_HELP, "paper")
    output_dir: str = option("", "Folder of the collection; running the same command again resumes it.")
    policy: str = option(
        "oracle", "Who plays: oracle, rule (the environment's own player), random, or a model: its folder or hub name."
    )
    target: str = option("skills", "What the examples teach: skills, actions (cloning of who plays), or both.", "paper")
    skill_share: float = option(0.5, "Share of skills among the examples of target=both.")
    slips: float = option(
        0.0, "Probability that a turn sends a command that is not the player's; it is not learned, the recovery is."
    )
    only_won: bool = option(True, "Learn actions from successful episodes alone.")
    split: str = option("", "Split to play; empty is the environment's default.")
    tasks: int = option(180, "Number of tasks, a fixed draw from the split (0: all).", "paper")
    repeats: int = option(8, "Episodes per task (K0).", "paper")
    temperature: float = option(0.4, "Sampling temperature of a model policy.", "released")
    max_turn_length: int = option(512, "Length limit of a reply of a model policy.", "paper")
    max_prompt_length: int = option(4096, "Length limit of a prompt of a model policy.", "released")
    chat_template_kwargs: str = option("", "Variables of the chat template of a model policy, as a JSON object.")
    seed: int = option(0, "Seed of the policy.")
    annotator: str = option(
        "rules",
        "rules, rules_terse (short form), endpoint, policy (the model that plays), or a function of yours as "
        "module:function.",
    )
    analyzer: str = option(
        "auto", "Format of request and answer: auto, json, json_skill_only, json_steps, brief, turn, module:NAME."
    )
    endpoint_url: str = option("", "OpenAI-compatible address, up to and including /v1.")
    endpoint_model: str = option("", "Model name at the endpoint.")
    endpoint_key_env: str = option("SEED_API_KEY", "Environment variable that holds the key.")
    endpoint_workers: int = option(4, "Requests at the same time.")
    endpoint_max_tokens: int = option(4096, "Length limit of an answer.", "paper")
    endpoint_timeout: float = option(120.0, "Seconds per attempt.")
    price_in: float = option(0.0, "Price per million prompt tokens, for the cost line.")
    price_out: float = option(0.0, "Price per million answer tokens, for the cost line.")
    library: str = option("", "Also write a static skill library to this JSON file.")


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    args = resolve(
        argv,
        [DataArguments],
        "Collect episodes and hindsight skills; --config takes the files of `seed-train rl` too.",
        DATA_RECIPES,
        "seed-train data",
        foreign=fields_of_rl(),
        renamed={"train_split": "split", "skill_analyzer": "analyzer"},
    ).parts[0]
    if not args.output_dir:
        raise UserError("set output_dir: --output_dir data/NAME")
    from seed_envs.statistics.summary import Played, summarise_outcomes
    from seed_trainer.skills.prompts import get_analyzer
    from seed_trainer.stage1 import annotators, collect, dataset
    from seed_trainer.stage1.demonstrations import Slipping, action_examples, mixed

    for name, least in (("tasks", 0), ("repeats", 1)):
        if getattr(args, name) < least:
            raise UserError(f"{name}={getattr(args, name)} must be at least {least}")
    _check_target(args)
    folder, library = Path(args.output_dir), Path(args.library or args.output_dir)
    if not args.no_preflight:
        check_folder(folder, "--output_dir")
        check_folder(library.parent if args.library else folder, "--library")
    player, profile, tasks = _prepare(args)
    try:
        analyzer = get_analyzer(args.analyzer, profile.style)
        annotator = _annotator(args)
    except (ValueError, DependencyMissing) as error:
        raise UserError(str(error)) from None
    policy = _policy(args, profile)
    if args.annotator == "policy":
        annotator = _self_annotator(args, policy, analyzer)
    if not args.no_preflight:
        _check(args, player, profile, tasks[0], policy)
    if args.dry_run:
        print(f"{len(tasks)} episodes by {args.policy}, annotated by {args.annotator}, would go to {folder}")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    library.parent.mkdir(parents=True, exist_ok=True)
    identity = {name: getattr(args, name) for name in IDENTITY}
    if args.slips:  # Absent from folders that were begun before there were slips.
        identity["slips"], policy = args.slips, Slipping(policy, profile, args.slips, args.seed)
    collect.claim(folder, identity)
    episodes = _play(player, policy, tasks, folder)
    annotations: list[Any] = [None] * len(episodes)
    failures: list[str] = []
    usage: dict[str, Any] = {}
    if args.target != "actions":
        annotations, failures, usage = _annotate(args, annotator, episodes, folder)
    records = list(dataset.examples(episodes, annotations, analyzer, args.policy))
    if args.target != "skills":
        actions = list(action_examples(episodes, profile, args.policy, args.only_won))
        both = args.target == "both"
        records = mixed(actions, records, args.skill_share, args.seed) if both else actions
    count = dataset.write_examples(folder / dataset.SFT_FILE, iter(records))
    if args.library:
        dataset.build_library(episodes, annotations).save(args.library)
    played = summarise_outcomes([Played.of(episode) for episode in episodes])
    summary = {
        "arguments": vars(args),
        "episodes": len(episodes),
        "success": played["success"]["rate"],
        "faults": played["counts"]["failed"],
        "skills": {} if args.target == "actions" else annotators.acceptance(annotations),
        "examples": count,
        "endpoint": usage,
        "failures": failures,
    }
    (folder / "summary.json").write_text(json.dumps(redact(summary), indent=2) + "\n", encoding="utf-8")
    print(_report(summary, folder / dataset.SFT_FILE, args.library))
    return 1 if failures else 0


def _check_target(args: Any) -> None:
    """Make sure that the fields about what is learned can be met.

    Raises:
        UserError: Naming the field.
    """
    if args.target not in TARGETS:
        raise UserError(f"target={args.target!r}, expected one of {TARGETS}.{close_matches(args.target, TARGETS)}")
    if not 0 <= args.slips < 1:
        raise UserError(f"slips={args.slips} must be at least 0 and below 1")
    if args.slips and args.target == "skills":
        raise UserError("slips are for learning actions: set --target actions or both, or leave --slips out")
    if not 0 < args.skill_share < 1:
        raise UserError(
            f"skill_share={args.skill_share} must lie between 0 and 1; --target actions or skills teaches one alone"
        )


def _prepare(args: Any) -> tuple[Any, Any, list[Any]]:
    from seed_envs.tasks import TaskSpec
    from seed_trainer.acting.play import EpisodePlayer
    from seed_trainer.commands.building import environment
    from seed_trainer.settings.tasks import split_rows

    make_env, profile = environment(args)
    env = make_env()
    try:
        rows = split_rows(env, args.split or env.unwrapped.split, args.tasks, "tasks")
    finally:
        env.close()
    tasks = [
        TaskSpec(r["task_id"], r["split"], r["seed"], group)
        for group, r in enumerate(rows)
        for _ in range(args.repeats)
    ]
    return EpisodePlayer(make_env, args.env_id, profile), profile, tasks


def _policy(args: Any, profile: Any) -> Any:
    from seed_trainer.stage1 import collect

    if args.policy == "oracle":
        return collect.oracle_policy(profile)
    if args.policy == "rule":
        return collect.rule_policy(profile)
    if args.policy == "random":
        return collect.random_policy(profile, args.seed)
    from seed_trainer.acting.sampling import Decoding

    decoding = Decoding(args.max_turn_length, args.temperature)
    model, template = _model_name(args), json_object("chat_template_kwargs", args.chat_template_kwargs)
    return collect.model_policy(model, profile, decoding, args.max_prompt_length, args.seed, template)


def _model_name(args: Any) -> str:
    from seed_trainer.commands.building import resolve_model

    path = resolve_model(args.policy)
    if not Path(path).is_dir() and not HUB_NAME.fullmatch(path):
        hint = close_matches(args.policy, POLICIES)
        raise UserError(f"policy={args.policy!r} is neither one of {POLICIES} nor a model folder or hub name.{hint}")
    return path


def _check(args: Any, player: Any, profile: Any, task: Any, policy: Any) -> None:
    """Look whether the policy can play and the annotator answers."""
    from seed_envs.endpoints.probe import probe
    from seed_envs.preflight import Contestant
    from seed_trainer.commands.checks import check_play, model_contestant, tell, unchanged

    if args.annotator == "endpoint":
        probe(args.endpoint_url, args.endpoint_model, args.endpoint_key_env, tell)
    contestant = Contestant(args.policy, policy=policy if args.policy == "random" else None)
    if args.policy not in POLICIES:
        limits = args.max_prompt_length, args.max_turn_length
        contestant = model_contestant(_model_name(args), None, *limits, unchanged(policy, policy.sampler.generator))
    check_play(args, player.make_env, profile, task, contestant)


def _play(player: Any, policy: Any, tasks: list[Any], folder: Path) -> list[Any]:
    from tqdm.auto import tqdm

    from seed_trainer.stage1 import collect

    done = len(dict(collect.read_trajectories(folder / collect.TRAJECTORIES_FILE)))
    with tqdm(total=len(tasks), initial=done, desc="episodes") as bar:
        episodes = collect.collect(player, policy, tasks, folder, bar.update)
    player.close()
    return episodes


def _annotator(args: Any) -> Any:
    """Return the rules that annotate, or the client of the external annotator.

    Raises:
        UserError: For an unknown annotator, or one without an address.
    """
    from seed_envs.endpoints.client import ChatClient
    from seed_trainer.stage1.annotators import RuleAnnotator

    if args.annotator == "policy":
        if args.policy in POLICIES:
            raise UserError(f"annotator=policy needs a model that plays, not policy={args.policy!r}: --policy FOLDER")
        return None  # it is asked through the policy, which is loaded later
    if args.annotator != "endpoint":
        return RuleAnnotator(args.env_id, args.annotator)
    if not args.endpoint_url or not args.endpoint_model:
        raise UserError("annotator=endpoint needs endpoint_url and endpoint_model")
    if args.endpoint_workers < 1:
        raise UserError(f"endpoint_workers={args.endpoint_workers} must be at least 1")
    return ChatClient(
        args.endpoint_url, args.endpoint_model, key_env=args.endpoint_key_env, timeout=args.endpoint_timeout
    )


def _self_annotator(args: Any, policy: Any, analyzer: Any) -> Any:
    from seed_trainer.settings.options import SEEDOptions
    from seed_trainer.skills.analyzer import SkillWriter
    from seed_trainer.stage1.annotators import PolicyAnnotator

    options = SEEDOptions(max_analysis_length=args.endpoint_max_tokens, skill_temperature=0.0)
    return PolicyAnnotator(SkillWriter(policy.encoder, policy.sampler, "turn", analyzer, options), args.policy)


def _annotate(
    args: Any, annotator: Any, episodes: list[Any], folder: Path
) -> tuple[list[Any], list[str], dict[str, Any]]:
    from seed_trainer.stage1 import annotators

    if args.annotator != "endpoint":
        return annotator.annotate(episodes), [], {}
    from tqdm.auto import tqdm

    parameters = {"temperature": 0.0, "max_tokens": args.endpoint_max_tokens}
    with annotator, tqdm(total=len(episodes), desc="skills") as bar:
        asking = annotators.EndpointAnnotator(
            annotator, parameters, folder, args.endpoint_workers, _asked_in(args.analyzer)
        )
        found, failures = asking.annotate(episodes, bar.update)
    used = annotator.usage
    usage = {
        **vars(used),
        "cost": (used.prompt_tokens * args.price_in + used.completion_tokens * args.price_out) / 1e6,
        "all_sessions_tokens": asking.spent(),
    }
    return found, failures, usage


def _asked_in(analyzer: str) -> Any:
    """Return how an external annotator is asked: as the policy will be, or with a document where that is a turn."""
    from seed_trainer.skills.prompts import ANALYZERS

    chosen = ANALYZERS.find("json" if analyzer == "auto" else analyzer)
    return chosen if chosen.style == "document" else ANALYZERS["json"]


def _report(summary: dict[str, Any], path: Path, library: str) -> str:
    faults = f", {summary['faults']} ended by a fault and not scored" if summary["faults"] else ""
    lines = [f"{summary['episodes']} episodes, success {number(summary['success'])}{faults}"]
    lines += [f"skills {name}: {share:.3f}" for name, share in summary["skills"].items()]
    if summary["endpoint"]:
        usage = summary["endpoint"]
        lines.append(
            f"endpoint: {usage['requests']} requests, {usage['attempts']} attempts, {usage['prompt_tokens']} + "
            f"{usage['completion_tokens']} tokens, cost {usage['cost']:.4f}; answers on disk: "
            f"{usage['all_sessions_tokens'][0]} + {usage['all_sessions_tokens'][1]} tokens"
        )
    lines += [f"failed: {failure}" for failure in summary["failures"][:5]]
    if summary["failures"]:
        lines.append(f"{len(summary['failures'])} skills are missing; run the same command again to ask for them")
    lines.append(f"{summary['examples']} examples in {path}")
    if library:
        lines.append(f"library in {library}")
    return "\n".join(lines)
