"""Counters of the server, in Prometheus' text format."""

from __future__ import annotations

from collections import Counter

_HELP = {
    "seed_sessions": ("gauge", "Open sessions"),
    "seed_sessions_max": ("gauge", "Most sessions at once"),
    "seed_episodes_started_total": ("counter", "Resets by environment"),
    "seed_episodes_ended_total": ("counter", "Finished episodes by environment and stop reason"),
    "seed_steps_total": ("counter", "Steps by environment"),
    "seed_step_seconds_total": ("counter", "Time in environments, queueing included, by environment"),
    "seed_faults_total": ("counter", "Exceptions of environments, by environment and type"),
    "seed_refused_total": ("counter", "Requests and sessions refused or cut off, by reason"),
}


class Metrics:
    """Labelled numbers; all changes happen in the server's event loop."""

    def __init__(self) -> None:
        self._values: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count; the name is a key of the table above."""
        self._values[name, tuple(labels.items())] += amount  # type: ignore[assignment]

    def render(self, sessions: int, most: int) -> str:
        """The page at ``/metrics``."""
        values = {**self._values, ("seed_sessions", ()): sessions, ("seed_sessions_max", ()): most}
        lines = []
        for name, (kind, text) in _HELP.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            for (counted, labels), value in sorted(values.items()):
                if counted == name:
                    inner = ",".join(f'{key}="{label}"' for key, label in labels)
                    lines.append(f"{name}{{{inner}}} {value:.9g}" if inner else f"{name} {value:.9g}")
        return "\n".join(lines) + "\n"
