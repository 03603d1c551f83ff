"""Derives the room templates of the generator from official games.

Run once by maintainers (``python -m seed_envs.alfworld scenes PATH``); its
result, ``scenes.json``, ships with the package.  It records what is constant
over all games of a room: receptacles, doors, which receptacles share a
place, fixed objects, which kinds of things occur; and over all rooms how often
a kind of thing lies on a kind of receptacle.  No game is contained in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from seed_envs.alfworld.pddl import Problem


def scene_number(task_id: str) -> int:
    """The room number at the end of an official task name.

    Args:
        task_id: ``split/task/trial``.

    Returns:
        Such as 301.
    """
    return int(task_id.split("/")[1].rsplit("-", 1)[1])


def room_of(scene: int) -> str:
    """The kind of room, by the numbering of the AI2-THOR floor plans.

    Args:
        scene: room number.

    Returns:
        ``kitchen``, ``living``, ``bedroom`` or ``bathroom``.
    """
    return {0: "kitchen", 2: "living", 3: "bedroom", 4: "bathroom"}[scene // 100]


def derive(problems: Iterable[tuple[int, Problem]]) -> dict[str, Any]:
    """Collect the templates.

    Args:
        problems: (room number, facts) of official games.

    Returns:
        ``scenes`` (one template per room) and ``typical`` (object type -> receptacle types with counts).
    """
    by_scene: dict[int, list[Problem]] = {}
    typical: dict[str, Counter[str]] = {}
    for scene, problem in problems:
        by_scene.setdefault(scene, []).append(problem)
        for name, receptacle in problem.inside:
            kind = problem.object_types.get(name, "")
            if name in problem.flags["pickupable"] and kind:
                typical.setdefault(kind, Counter())[problem.receptacle_types[receptacle]] += 1
    scenes = [_template(scene, games) for scene, games in sorted(by_scene.items())]
    table = {
        kind: [[name, count] for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))]
        for kind, counts in sorted(typical.items())
    }
    return {"scenes": scenes, "typical": table}


def _template(scene: int, games: list[Problem]) -> dict[str, Any]:
    layouts = Counter(json.dumps(_layout(problem)) for problem in games)
    layout = max(sorted(layouts), key=lambda text: layouts[text])
    kinds: Counter[str] = Counter()
    for problem in games:
        kinds.update({problem.object_types[o] for o in problem.flags["pickupable"] if o in problem.object_types})
    usual = sorted(kind for kind, count in kinds.items() if 2 * count >= len(games))
    return {"scene": scene, "room": room_of(scene), **json.loads(layout), "kinds": usual}


def _layout(problem: Problem) -> dict[str, Any]:
    receptacles = sorted(problem.receptacle_types)
    places = sorted(set(problem.receptacle_locations.values()))
    index = {name: number for number, name in enumerate(receptacles)}
    fixed = sorted(o for o in problem.object_types if o not in problem.flags["pickupable"])
    rows = [
        [
            problem.receptacle_types[r],
            places.index(problem.receptacle_locations[r]),
            int(r in problem.flags["openable"]),
        ]
        for r in receptacles
    ]
    standing = [[problem.object_types[o], sorted(index[r] for name, r in problem.inside if name == o)] for o in fixed]
    return {"receptacles": rows, "fixed": standing}


def dump(templates: dict[str, Any]) -> str:
    """Write templates as JSON with one room or kind a line, so that changes can be read.

    Args:
        templates: what :func:`derive` returned.

    Returns:
        The text of ``scenes.json``.
    """
    scenes = ",\n".join(json.dumps(scene, separators=(",", ":")) for scene in templates["scenes"])
    typical = ",\n".join(
        f"{json.dumps(kind)}:{json.dumps(rows, separators=(',', ':'))}" for kind, rows in templates["typical"].items()
    )
    return f'{{"scenes": [\n{scenes}\n],\n"typical": {{\n{typical}\n}}}}\n'
