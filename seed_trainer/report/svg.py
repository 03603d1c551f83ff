"""Line charts as inline SVG, without a plotting library: a mean line per arm and a band of one standard error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#1b6ca8", "#c8553d", "#3f7d20", "#7b4ba3", "#8a6d1d", "#26797a", "#9c2c5f", "#555555")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "12 4", "1 4", "6 2 1 2")
WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 40


@dataclass(frozen=True)
class Line:
    """One curve: x, mean and half-width of its band; ``style`` chooses colour and dashes."""

    name: str
    points: Sequence[tuple[float, float, float]]
    style: int


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers that cover a range."""
    raw = (high - low) / max(wanted, 1)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw - 1e-12)
    first = math.ceil(low / step - 1e-9) * step
    return [first + i * step for i in range(int((high - first) / step + 1e-9) + 1)]


def _range(values: Sequence[float], unit: bool) -> tuple[float, float]:
    if unit:
        return 0.0, 1.0
    low, high = min(values), max(values)
    pad = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - pad, high + pad


def _number(value: float) -> str:
    return f"{value:.6g}"


def chart(title: str, lines: Sequence[Line], unit: bool, xlabel: str = "rounds") -> str:
    """Return one chart.

    Args:
        title: What the y-axis shows.
        lines: The curves.
        unit: Whether values are shares, drawn from 0 to 1.
        xlabel: What the x-axis shows.
    """
    xs = [x for line in lines for x, _, _ in line.points]
    ys = [y + d for line in lines for _, y, half in line.points for d in (-half, half)]
    x_low, x_high = min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1
    y_low, y_high = _range(ys, unit)

    def px(x: float) -> float:
        return LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (min(max(y, y_low), y_high) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">']
    for value in ticks(y_low, y_high):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{py(value):.1f}" y2="{py(value):.1f}"/>')
        label = f"{value:.0%}" if unit else _number(value)
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{py(value) + 4:.1f}" text-anchor="end">{label}</text>')
    base = HEIGHT - BOTTOM + 16
    parts += [
        f'<text class="tick" x="{px(value):.1f}" y="{base}" text-anchor="middle">{_number(value)}</text>'
        for value in ticks(x_low, x_high)
    ]
    parts.append(
        f'<text class="tick" x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{xlabel}</text>'
    )
    for line in lines:
        parts += _draw(line, px, py)
    return "".join([*parts, "</svg>"])


def _draw(line: Line, px: Callable[[float], float], py: Callable[[float], float]) -> list[str]:
    colour, dash = COLOURS[line.style % len(COLOURS)], DASHES[line.style % len(DASHES)]
    upper = [f"{px(x):.1f},{py(y + half):.1f}" for x, y, half in line.points]
    lower = [f"{px(x):.1f},{py(y - half):.1f}" for x, y, half in reversed(line.points)]
    parts = []
    if any(half > 0 for _, _, half in line.points):
        parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.15"/>')
    path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y, _ in line.points)
    parts.append(
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}">'
        f"<title>{escape(line.name)}</title></polyline>"
    )
    if len(line.points) == 1:
        x, y, _ = line.points[0]
        parts.append(f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3.5" fill="{colour}"/>')
    return parts


def legend(names: Sequence[str]) -> str:
    """Return the legend shared by all charts."""
    items = []
    for index, name in enumerate(names):
        colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
        items.append(
            f'<span class="key"><svg viewBox="0 0 34 10"><line x1="0" x2="34" y1="5" y2="5" stroke="{colour}" '
            f'stroke-width="3" stroke-dasharray="{dash}"/></svg>{escape(name)}</span>'
        )
    return f'<p class="legend">{"".join(items)}</p>'
