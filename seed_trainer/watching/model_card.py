"""The model card of a run: what was trained, how to repeat it, what to cite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seed_envs.tables import table

CITATION = """@misc{seed2026,
  title = {SEED: Self-Evolving On-Policy Distillation},
  eprint = {2607.14777},
  archivePrefix = {arXiv}
}"""


def model_card(name: str, base_model: str, args: Any, profile: str, env_id: str, versions: dict[str, str]) -> str:
    """Return the text of the card.

    Args:
        name: Name of the model.
        base_model: Where training started from.
        args: The training configuration.
        profile: Name of the environment profile.
        env_id: Id of the environment.
        versions: Versions of the packages that matter.
    """
    method = "GRPO" if not args.teaches else f"distillation ({args.opd_term}, skills: {args.skill_source})"
    rows = {
        "started from": base_model,
        "environment": f"{env_id}, profile {profile}",
        "method": method,
        "lambda, beta of the gate": f"{args.opd_coef}, {args.opd_gate_beta}",
        "KL coefficient": args.beta,
        "learning rate": args.learning_rate,
        "episodes per task": args.num_generations,
        "layout": args.rollout_layout,
        "seed": args.seed,
        "versions": ", ".join(f"{package} {number}" for package, number in versions.items()),
    }
    listed = table(("", ""), list(rows.items()))
    return (
        f"---\nlibrary_name: transformers\ntags: [seed, grpo, trl]\n---\n\n# {name}\n\nTrained with `seed-train rl`; "
        f"`run.json` beside this file holds every setting and where it came from.\n\n{listed}\n\n"
        f"The policy runs without skills, analyzer or retrieval.\n\n```bibtex\n{CITATION}\n```\n"
    )


def write_model_card(folder: str, text: str) -> None:
    """Write the card as ``README.md``."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / "README.md").write_text(text, encoding="utf-8")
