"""Below the leaderboard: tasks by agents, why tasks fail, note against record, parts of the set, two compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

from graders import frames
from graders.facts import Set, TrialFact
from graders.frames import Basis
from graders.intervals import Comparison, compare
from graders.metrics import FEWEST_RANKED, Counts
from review_ui import theme
from review_ui.markup import Markup, join, tag
from review_ui.results.narrow import to_run_again

if TYPE_CHECKING:
    import pandas as pd

CAPABILITIES = {
    "data_retrieval": ("Data retrieval", "retrieval", "light"),
    "clinical_reasoning": ("Clinical reasoning", "reasoning", "light"),
    "action_execution": ("Action", "action", "dark"),
    "documentation": ("Documentation", "documentation", "dark"),
}
#: (task, agent) -> (passed, of)
Cells = dict[tuple[str, str], Counts]
#: The address of the trials of a task and agent ("" = of every agent).
Address = Callable[[str, str], str]


def cells(found: Set, *, basis: Basis, critical: bool) -> Cells:
    """Runs passed of runs counted for each task and agent; 0 of 0 where there are trials and none counts."""
    made: Cells = {(fact.row.task, fact.row.agent): Counts(0, 0) for fact in found.facts}
    by_agent: dict[str, list[TrialFact]] = {}
    for fact in found.facts:
        by_agent.setdefault(fact.row.agent, []).append(fact)
    for agent, facts in by_agent.items():
        for task, counts in frames.counts_by_task(facts, basis=basis, critical=critical).items():
            made[(task, agent)] = counts
    return made


def easiest_first(found: Cells) -> list[str]:
    """The tasks by the share of all agents' runs that passed, then by name."""
    passed: dict[str, list[int]] = {}
    for (task, _), one in found.items():
        total = passed.setdefault(task, [0, 0])
        total[0] += one.c
        total[1] += one.n
    return sorted(passed, key=lambda task: (-passed[task][0] / (passed[task][1] or 1), task))


def heat_map(found: Cells, tasks: Sequence[str], agents: Sequence[str], address: Address) -> Markup:
    """Tasks by agents: how many runs passed; each cell leads to its trials."""
    rows = []
    for task in tasks:
        made = []
        for agent in agents:
            one = found.get((task, agent))
            if one is None:
                made.append(tag("td", "–", cls="heat none"))
                continue
            step = 0 if not one.c else 3 if one.c == one.n else 2 if 2 * one.c >= one.n else 1
            words = f"{one.c} of {one.n}" if one.n else "none graded"
            link = tag("a", words, href=address(task, agent), title=f"Trials of {agent} on {task}")
            made.append(tag("td", link, cls=f"heat h{step}"))
        rows.append(tag("tr", tag("th", task, scope="row"), join(made)))
    head = tag("tr", tag("th", "Task", scope="col"), join(tag("th", agent, scope="col") for agent in agents))
    body = tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid heat-map")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Tasks by agents")


def failures(frame: pd.DataFrame) -> Markup:
    """Of the failed checkpoints of each agent, the share of each capability; values inside where they fit."""
    legend = [
        tag("span", tag("i", cls="swatch", style=f"background:var(--{role})"), words, cls="sm")
        for words, role, _ in CAPABILITIES.values()
    ]
    rows = []
    for agent, mine in frame.groupby("agent", sort=True):
        pieces = []
        order = {name: place for place, name in enumerate(CAPABILITIES)}
        parts_of = sorted(mine.itertuples(), key=lambda row: order.get(str(row.part), len(order)))
        for row in parts_of:
            if not row.failed:
                continue
            words, role, ink = CAPABILITIES.get(str(row.part), (str(row.part), "gray-fill", "dark"))
            value = 100 * float(row.share)
            told = f"{words}: {row.failed} of {row.of} failed checkpoints, {value:.0f}%"
            pieces.append(
                tag(
                    "div",
                    f"{value:.0f}" if value >= 6 else "",
                    cls=f"piece {ink}",
                    style=f"width:{value:.2f}%;background:var(--{role})",
                    title=told,
                )
            )
        said = "; ".join(
            f"{CAPABILITIES.get(str(row.part), (str(row.part),))[0]} {100 * float(row.share):.0f}%"
            for row in parts_of
            if row.failed
        )
        body = tag("div", join(pieces), cls="stack", role="img", aria_label=f"{agent}: {said}")
        bar = body if pieces else tag("span", "nothing failed", cls="sm mute")
        rows.append(tag("div", tag("span", str(agent), cls="sm"), bar, cls="stack-row"))
    return tag("div", tag("div", join(legend), cls="legend left"), join(rows), cls="stacks")


def gaps(frame: pd.DataFrame, read: dict[str, int]) -> Markup:
    """How often note and record disagree, an agent a row. `read`: its trials whose note and record were read."""
    cases = ("recommended and not done", "done and not written", "ordered beyond authority")
    counted = frame.groupby(["agent", "case"]).size() if len(frame) else {}
    tally = {agent: [int(counted.get((agent, case), 0)) for case in cases] for agent in sorted(read)}
    most = max([1, *(number for numbers in tally.values() for number in numbers)])
    roles = ("orange", "primary", "red")
    rows = []
    for agent, numbers in tally.items():
        made = [tag("th", agent, scope="row")]
        for number, role in zip(numbers, roles, strict=True):
            bar = tag("i", "", cls="gap-bar", style=f"width:{6 * number / most:.2f}rem;background:var(--{role})")
            made.append(tag("td", tag("b", f"{number:,}"), " ", bar if number else None))
        rows.append(tag("tr", join(made), tag("td", f"{read[agent]:,}", cls="num")))
    heads = ["Agent", "Recommended in note, not done", "Done, not in note", "Ordered beyond authority", "Trials read"]
    head = tag("tr", join(tag("th", name, scope="col") for name in heads))
    return tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")


def gaps_of(found: Set, frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, int]]:
    """(the gaps of these trials, agents named as the set names them, how many trials of each agent were read).

    `frame`: of one batch, by `graders.gap.gap_frame`.
    """
    # As gap_frame reads them: graded, on the present version of a task that can be read.
    read = [one for one in found.facts if one.row.counts_as == "valid" and one.specialty and not to_run_again(one.row)]
    named = {(one.row.task, one.row.agent.split(" [", 1)[0], one.row.run): one.row.agent for one in read}
    agents = [named.get(key) for key in zip(frame["task"], frame["agent"], frame["run"], strict=True)]
    mine = frame.assign(agent=agents)
    return mine[mine["agent"].notna()], dict(Counter(one.row.agent for one in read))


def parts(frame: pd.DataFrame) -> Markup:
    """pass@1 by part of the set; a part with few tasks is listed and not ranked."""
    heads = ("Part", "Agent", "Tasks", "Runs", "pass@1, 95% interval", "")
    rows = []
    for name, mine in frame.groupby("part", sort=True):
        ordered = mine.sort_values(["rank", "agent"]) if bool(mine["ranked"].iloc[0]) else mine.sort_values("agent")
        for place, row in enumerate(ordered.itertuples()):
            value = "–" if isnan(row.value) else f"{100 * row.value:.1f}%"
            span = "" if isnan(row.value) else f" ({100 * row.low:.1f} to {100 * row.high:.1f})"
            rank = f"rank {row.rank:.0f}" if row.ranked and not isnan(row.rank) else ""
            rows.append(
                tag(
                    "tr",
                    tag("th", str(name) if not place else "", scope="row"),
                    tag("td", str(row.agent)),
                    tag("td", f"{row.tasks:,}", cls="num"),
                    tag("td", f"{row.runs:,}", cls="num"),
                    tag("td", tag("b", value), span, cls="num nowrap"),
                    tag("td", rank if rank else f"under {FEWEST_RANKED} tasks" if not place else "", cls="xs mute"),
                )
            )
    head = tag(
        "tr", join(tag("th", name, scope="col", cls="num" if 1 < n < 5 else None) for n, name in enumerate(heads))
    )
    body = tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="By part")


def first_steps(frame: pd.DataFrame, address: Address, most: int = 15) -> Markup:
    """Which checkpoint runs failed first, commonest first; each row leads to the trials of the task."""
    ranked = frame.sort_values(["runs", "task"], ascending=[False, True]).head(most)
    rows = [
        tag(
            "tr",
            tag("td", tag("a", str(row.title), href=address(str(row.task), str(row.agent)))),
            tag("td", str(row.task), cls="sm mute"),
            tag("td", str(row.agent)),
            tag("td", CAPABILITIES.get(str(row.capability), (str(row.capability),))[0]),
            tag("td", f"{row.runs:,}", cls="num"),
        )
        for row in ranked.itertuples()
    ]
    heads = ("First failed checkpoint", "Task", "Agent", "Capability", "Runs")
    head = tag("tr", join(tag("th", name, scope="col") for name in heads))
    return tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")


def plain(frame: pd.DataFrame, percents: Sequence[str] = ()) -> Markup:
    """A frame of counts and shares as a table of text; columns in `percents` hold shares from 0 to 1."""

    def said(name: str, value: Any) -> str:
        if isinstance(value, float):
            return "–" if isnan(value) else f"{100 * value:.1f}%" if name in percents else f"{value:g}"
        return str(value).replace("_", " ")

    names = list(frame.columns)
    numeric = {name for name in names if frame[name].dtype.kind in "iuf"}
    head = tag("tr", join(tag("th", name.replace("_", " ").capitalize(), scope="col") for name in names))
    rows = [
        tag(
            "tr",
            join(tag("td", said(n, v), cls="num" if n in numeric else None) for n, v in zip(names, r, strict=True)),
        )
        for r in frame.itertuples(index=False)
    ]
    return tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")


# ---- two agents -----------------------------------------------------------------------------------------------------


def paired(found: Cells, first: str, second: str) -> tuple[Comparison | None, list[tuple[str, Counts, Counts]]]:
    """The comparison over the tasks that both have counted runs on, and these tasks, the largest differences first."""
    both = [
        (task, found[(task, first)], found[(task, second)])
        for task in sorted({task for task, _ in found})
        if found.get((task, first), Counts(0, 0)).n and found.get((task, second), Counts(0, 0)).n
    ]
    rates = [(one.c / one.n, other.c / other.n) for _, one, other in both]
    told = compare([one for one, _ in rates], [other for _, other in rates])
    return told, sorted(both, key=lambda row: (-abs(row[1].c / row[1].n - row[2].c / row[2].n), row[0]))


def comparison_words(told: Comparison, first: str, second: str) -> list[str]:
    """The comparison in words: what differs, how sure that is, and what this set could have shown."""
    points = 100 * told.difference
    low, high = 100 * told.interval.low, 100 * told.interval.high
    if told.interval.low > 0 or told.interval.high < 0:
        ahead = first if points > 0 else second
        verdict = f"{ahead} passed more of the same tasks."
    else:
        verdict = "These tasks do not tell the two apart: the interval of the difference holds 0."
    return [
        verdict,
        f"{first} {100 * told.first:.1f}%, {second} {100 * told.second:.1f}%; difference {points:+.1f} points "
        f"({low:+.1f} to {high:+.1f}), p = {told.p:.3f} (sign-flip test over {told.tasks} tasks).",
        f"{first} is ahead on {told.better} tasks, {second} on {told.worse}, equal on "
        f"{told.tasks - told.better - told.worse}. As these tasks differ, the set finds a difference of "
        f"{100 * told.detectable:.0f} points or more with 80% power.",
    ]


def compared(rows: Sequence[tuple[str, Counts, Counts]], first: str, second: str, address: Address) -> Markup:
    """Each task with both agents' runs, the flips first."""
    made = []
    for task, one, other in rows:
        gap = one.c / one.n - other.c / other.n
        state = (
            theme.chip("equal", "plain")
            if abs(gap) < 1e-12
            else theme.chip(f"{first if gap > 0 else second} ahead", "blue", "swap_vert")
        )
        made.append(
            tag(
                "tr",
                tag("th", task, scope="row"),
                tag("td", tag("a", f"{one.c} of {one.n}", href=address(task, first)), cls="num"),
                tag("td", tag("a", f"{other.c} of {other.n}", href=address(task, second)), cls="num"),
                tag("td", f"{100 * gap:+.0f}" if abs(gap) > 1e-12 else "0", cls="num"),
                tag("td", state),
            )
        )
    heads = ("Task", first, second, "Points", "")
    head = tag(
        "tr", join(tag("th", name, scope="col", cls="num" if 0 < n < 4 else None) for n, name in enumerate(heads))
    )
    body = tag("table", tag("thead", head), tag("tbody", join(made)), cls="grid figures")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Two agents, task by task")
