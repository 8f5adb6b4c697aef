"""A report as one static HTML page: no script, nothing fetched, every text escaped, plots as inline SVG.

It can be mailed, archived beside the batch, and opened where there is no network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from graders import frames
from graders.facts import Set
from graders.metrics import FEWEST_RANKED

if TYPE_CHECKING:
    import pandas as pd

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733; background: #fff; margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .5rem; }
p { margin: .3rem 0; max-width: 60rem; } .mute { color: #55626f; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .5rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #dde3e9; text-align: left; vertical-align: top; }
thead th { color: #55626f; font-weight: 600; } td.n, th.n { text-align: right; }
.scroll { overflow-x: auto; } svg { display: block; } svg text { font: 12px system-ui, sans-serif; fill: #1d2733; }
td.h0 { background: #fbe9e7; } td.h1 { background: #fdf3d8; } td.h2 { background: #e3f1e5; }
td.h3 { background: #bfe3c6; }
@media print { body { margin: 0; } h2 { break-after: avoid; } }
"""
_INK, _LINE, _FILL = "#1f5f8b", "#b8c4cf", ("#1f5f8b", "#8a5a9e", "#2f855a", "#b7791f", "#7a8793")
_CAPABILITIES = {
    "data_retrieval": "retrieval",
    "clinical_reasoning": "reasoning",
    "action_execution": "action",
    "documentation": "documentation",
}


def page(title: str, found: Set, *, k: int = 3, gaps: pd.DataFrame | None = None) -> str:
    """The whole report. `gaps`: of `gap.gap_frame`, or None to leave that part out."""
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="mute">{escape(_summary(found))}</p>',
        *_agents(found),
        *_figures(found, k),
        *_comparisons(found),
        *_heat(found),
        *_shares(found),
        *_parts(found, "group", "By group of specialties"),
        *_parts(found, "workflow", "By workflow"),
        *_first(found),
        *_gaps(gaps),
        *_judges(found),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _summary(found: Set) -> str:
    rows = [fact.row for fact in found.facts]
    graded = sum(row.result in ("pass", "fail") for row in rows)
    text = (
        f"{len(found.tasks)} tasks, {len(found.agents)} agents; "
        f"{sum(row.counts_as != 'not attempted' for row in rows)} runs attempted: {graded} graded, "
        f"{sum(row.result == 'ungraded' for row in rows)} ungraded, "
        f"{sum(row.counts_as == 'invalid' for row in rows)} invalid; "
        f"{sum(row.counts_as == 'not attempted' for row in rows)} not finished."
    )
    if found.aside:
        text += f" {found.aside} runs on other versions of these tasks are set aside."
    if any(row.draft for row in rows):
        text += " Some tasks are drafts."
    return text


# ---- parts ----------------------------------------------------------------------------------------------------------


def _agents(found: Set) -> list[str]:
    frame = frames.agents(found)
    ranked = len(found.tasks) >= FEWEST_RANKED
    note = "" if ranked else f" Under {FEWEST_RANKED} tasks: listed by name, not ranked."
    return [
        "<h2>Agents</h2>",
        "<p>pass@1 = mean of c/n over tasks, all required checkpoints passed. Bars: 95% intervals over tasks (Korn and "
        f"Graubard). strict = over attempted runs. Costs in USD.{note} With {len(found.tasks)} tasks a difference of "
        f"about {100 * frames.detectable(found):.0f} points between two agents is found with 80% power.</p>",
        bars(
            [
                (str(row.agent), _number(row.pass_at_1), _number(row.low), _number(row.high))
                for row in frame.itertuples()
            ]
        ),
        table(
            frame.drop(columns=["open", "tokens_in", "tokens_out"]),
            percents=("pass_at_1", "low", "high", "sd_over_runs", "strict", "critical_pass"),
        ),
    ]


def _figures(found: Set, k: int) -> list[str]:
    frame = frames.figures(found, k)
    return [
        "<h2>Every convention by its formula</h2>",
        f"<p>n graded runs a task, c passed, k = {k}. left_out: tasks with fewer than k runs, which give none.</p>",
        table(frame, percents=("value", "low", "high")),
    ]


def _comparisons(found: Set) -> list[str]:
    frame = frames.comparisons(found)
    if frame.empty:
        return []
    return [
        "<h2>Pairs of agents over the same tasks</h2>",
        "<p>difference of pass@1 with its 95% interval; p of the sign-flip test over tasks; detectable = the smallest "
        "difference found with 80% power, given how the tasks differ here. No correction for the number of pairs.</p>",
        table(frame, percents=("first_rate", "second_rate", "difference", "low", "high", "detectable")),
    ]


def _heat(found: Set) -> list[str]:
    frame = frames.heat(found)
    cells = {(row.task, row.agent): row for row in frame.itertuples()}
    head = "".join(f'<th scope="col">{escape(agent)}</th>' for agent in found.agents)
    rows = []
    for task in found.tasks:
        made = []
        for agent in found.agents:
            row = cells.get((task, agent))
            if row is None or not row.graded:
                made.append('<td class="n mute">none graded</td>' if row is not None else '<td class="n mute">-</td>')
                continue
            level = 0 if not row.passed else 3 if row.passed == row.graded else 2 if 2 * row.passed >= row.graded else 1
            made.append(f'<td class="n h{level}">{row.passed} of {row.graded}</td>')
        rows.append(f'<tr><th scope="row">{escape(task)}</th>{"".join(made)}</tr>')
    return [
        "<h2>Tasks by agents</h2>",
        "<p>Runs passed of runs graded.</p>",
        f'<div class="scroll"><table><thead><tr><th scope="col">task</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>",
    ]


def _shares(found: Set) -> list[str]:
    frame = frames.failure_shares(found)
    if frame.empty:
        return []
    kinds = frames.failure_shares(found, "kind")
    stacked = [
        (
            agent,
            [(_CAPABILITIES.get(str(row.part), str(row.part)), _number(row.share) or 0.0) for row in mine.itertuples()],
        )
        for agent, mine in frame.groupby("agent")
    ]
    return [
        "<h2>What failed</h2>",
        "<p>Of all failed checkpoints (fail or partial; errors are none), the share of each capability, and of each "
        "kind of reasoning; failed_rate = failed of those judged.</p>",
        stacks(stacked),
        table(frame, percents=("share", "low", "high", "failed_rate")),
        *([] if kinds.empty else [table(kinds, percents=("share", "low", "high", "failed_rate"))]),
    ]


def _parts(found: Set, part: frames.Part, title: str) -> list[str]:
    frame = frames.by_part(found, part)
    note = f"A part with fewer than {FEWEST_RANKED} tasks is not ranked."
    return [
        f"<h2>{title}</h2>",
        f"<p>{note}</p>",
        table(frame.drop(columns="ranked"), percents=("value", "low", "high")),
    ]


def _first(found: Set) -> list[str]:
    frame = frames.first_failures(found)
    if frame.empty:
        return []
    return [
        "<h2>First failed step</h2>",
        "<p>How often a checkpoint is the first, in clinical order, that a run failed.</p>",
        table(frame.sort_values("runs", ascending=False).head(50)),
    ]


def _gaps(gaps: pd.DataFrame | None) -> list[str]:
    if gaps is None:
        return []
    title = "<h2>Note against record</h2>"
    if gaps.empty:
        return [title, "<p>In no run does the note recommend what the record lacks, nor the reverse.</p>"]
    return [title, "<p>Case by case, by the task's authority.</p>", table(gaps.head(200))]


def _judges(found: Set) -> list[str]:
    frame = frames.judges(found)
    causes = frames.causes(found)
    shown = []
    if not frame.empty:
        shown += [
            "<h2>Judge</h2>",
            "<p>flip_rate = votes besides the commonest one / votes, of verdicts with two votes or more.</p>",
            table(frame, percents=("flip_rate",)),
        ]
    if not causes.empty:
        shown += ["<h2>Causes that physicians named</h2>", table(causes)]
    return shown


# ---- drawing --------------------------------------------------------------------------------------------------------


def _number(value: Any) -> float | None:
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else float(value)


def table(frame: pd.DataFrame, percents: Iterable[str] = ()) -> str:
    """A frame as an escaped HTML table; columns in `percents` are shown in percent."""
    shown = set(percents)
    numeric = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    head = "".join(
        f'<th scope="col"{_right(name in numeric)}>{escape(str(name).replace("_", " "))}</th>' for name in frame.columns
    )
    rows = []
    for row in frame.itertuples(index=False):
        cells = zip(frame.columns, row, strict=True)
        rows.append(
            "".join(f"<td{_right(name in numeric)}>{_cell(value, name in shown)}</td>" for name, value in cells)
        )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _right(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(value: Any, percent: bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if math.isnan(value):
            return "-"
        return f"{100 * value:.1f}%" if percent else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return escape("-" if value is None else str(value))


def bars(rows: Sequence[tuple[str, float | None, float | None, float | None]]) -> str:
    """A dot with its interval for each (name, value, low, high), all in 0 to 1."""
    left, width, step = 260, 520, 26
    height = step * len(rows) + 30
    drawn = [_axis(left, width, height)]
    for place, (name, value, low, high) in enumerate(rows):
        y = step * place + 18
        drawn.append(_label(name, left - 10, y + 4))
        if value is None or low is None or high is None:
            drawn.append(f'<text x="{left + 4}" y="{y + 4}">none graded</text>')
            continue
        x, start, end = (left + width * part for part in (value, low, high))
        told = escape(f"{name}: {100 * value:.1f}% ({100 * low:.1f} to {100 * high:.1f}%)")
        drawn.append(
            f"<g><title>{told}</title>"
            f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{y}" y2="{y}" stroke="{_INK}" stroke-width="3"/>'
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{_INK}"/></g>'
        )
    return _svg(left + width + 20, height, "pass@1 with 95% intervals", drawn)


def stacks(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """A bar of shares for each (name, [(part, share)])."""
    left, width, step = 260, 520, 28
    names = list(dict.fromkeys(part for _, shares in rows for part, _ in shares))
    height = step * len(rows) + 60
    drawn = []
    for place, (name, shares) in enumerate(rows):
        y, x = step * place + 8, float(left)
        drawn.append(_label(name, left - 10, y + 13))
        for part, size in shares:
            told = escape(f"{name}: {part} {100 * size:.1f}%")
            fill = _FILL[names.index(part) % len(_FILL)]
            drawn.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width * size:.1f}" height="18" fill="{fill}">'
                f"<title>{told}</title></rect>"
            )
            x += width * size
    x = float(left)
    for place, part in enumerate(names):
        fill = _FILL[place % len(_FILL)]
        drawn.append(f'<rect x="{x:.1f}" y="{height - 34}" width="12" height="12" fill="{fill}"/>')
        drawn.append(f'<text x="{x + 17:.1f}" y="{height - 24}">{escape(part)}</text>')
        x += 30 + 7.2 * len(part)
    return _svg(left + width + 20, height, "Failed checkpoints by capability", drawn)


def _axis(left: int, width: int, height: int) -> str:
    marks = []
    for tenth in range(0, 11, 2):
        x = left + width * tenth / 10
        marks.append(f'<line x1="{x}" x2="{x}" y1="4" y2="{height - 20}" stroke="{_LINE}"/>')
        marks.append(f'<text x="{x}" y="{height - 4}" text-anchor="middle">{10 * tenth}%</text>')
    return "".join(marks)


def _label(name: str, x: float, y: float) -> str:
    short = name if len(name) <= 36 else f"{name[:35]}…"
    return f'<text x="{x}" y="{y}" text-anchor="end"><title>{escape(name)}</title>{escape(short)}</text>'


def _svg(width: int, height: int, title: str, drawn: Iterable[str]) -> str:
    return (
        f'<div class="scroll"><svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(drawn)}</svg></div>'
    )
