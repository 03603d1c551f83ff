"""The model card of a run: what was trained, how to repeat it, what to cite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers
import trl

from seed_envs.tables import table

CITATION = """@misc{seed2026,
  title = {SEED: Self-Evolving On-Policy Distillation},
  eprint = {2607.14777},
  archivePrefix = {arXiv}
}"""


def write_model_card(config: Any, args: Any, profile: str, env_id: str, name: str | None = None) -> None:
    """Write the card as ``README.md`` of the run folder.

    Args:
        config: The model's configuration, which knows where training started from.
        args: The training configuration.
        profile: Name of the environment profile.
        env_id: Id of the environment.
        name: Name of the model, the folder's by default.
    """
    folder = Path(args.output_dir)
    rows = {
        "started from": str(getattr(config, "_name_or_path", "")) or "an instance without a path",
        "environment": f"{env_id}, profile {profile}",
        "method": f"distillation ({args.opd_term}, skills: {args.skill_source})" if args.teaches else "GRPO",
        "lambda, beta of the gate": f"{args.opd_coef}, {args.opd_gate_beta}",
        "KL coefficient": args.beta,
        "learning rate": args.learning_rate,
        "episodes per task": args.num_generations,
        "layout": args.rollout_layout,
        "seed": args.seed,
        "versions": f"trl {trl.__version__}, transformers {transformers.__version__}",
    }
    text = (
        f"---\nlibrary_name: transformers\ntags: [seed, grpo, trl]\n---\n\n# {name or folder.name}\n\n"
        f"Trained with `seed-train rl`; `run.json` beside this file holds every setting and where it came from.\n\n"
        f"{table(('', ''), list(rows.items()))}\n\n"
        f"The policy runs without skills, analyzer or retrieval.\n\n```bibtex\n{CITATION}\n```\n"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(text, encoding="utf-8")
