"""The leaderboard: every rate by its formula with its interval, and what it is a rate of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graders.facts import Set, TrialFact
from graders.frames import Basis, counts_by_task
from graders.intervals import Interval, detectable_difference
from graders.metrics import (
    FEWEST_RANKED,
    Estimate,
    all_conventions,
    events_per_task,
    pass_at_1,
    ranks,
    spread_over_runs,
)
from review_ui import theme
from review_ui.markup import Markup, join, tag
from review_ui.results.narrow import to_regrade, to_run_again
from runtime.agents import is_built_in


@dataclass(frozen=True)
class Line:
    """One agent. `figures`: pass@1, pass@k unbiased and plug-in, pass^k unbiased and plug-in, in this order.

    `spread`: the standard deviation of the pass rate over run numbers, None of one run. `calls`: mean tool calls a
    graded run; `cost`: USD a graded run, None = unknown.
    """

    agent: str
    rank: int | None
    figures: tuple[Estimate, ...]
    strict: Estimate
    critical: Estimate
    spread: float | None
    tasks: int
    attempted: int
    graded: int
    ungraded: int
    to_regrade: int
    to_run_again: int
    invalid: int
    unfinished: int
    severe: int
    severe_rate: float | None
    severe_interval: Interval | None
    calls: float | None
    cost: float | None

    @property
    def control(self) -> bool:
        """Whether it is a built-in agent, which is there to test the tasks."""
        return is_built_in(self.agent.split(" [", 1)[0])


def most_runs(found: Set) -> int:
    """The most graded runs that any agent has of any task: the largest k with a figure."""
    counts: dict[tuple[str, str], int] = {}
    for fact in found.facts:
        if fact.row.result in ("pass", "fail"):
            key = (fact.row.task, fact.row.agent)
            counts[key] = counts.get(key, 0) + 1
    return max(counts.values(), default=0)


def lines(found: Set, *, k: int, basis: Basis = "graded", critical: bool = False) -> list[Line]:
    """A line an agent; models before the built-in controls; by pass@1 where there are tasks enough, else by name."""
    by_agent: dict[str, list[TrialFact]] = {}
    for fact in found.facts:
        by_agent.setdefault(fact.row.agent, []).append(fact)
    made = [_line(agent, facts, k, basis, critical) for agent, facts in by_agent.items()]
    placed = ranks({one.agent: one.figures[0].value for one in made if not one.control}, len(found.tasks))
    ranked = [Line(**{**vars(one), "rank": placed.get(one.agent)}) for one in made]
    return sorted(ranked, key=lambda one: (one.control, one.rank or 0, one.agent))


def _line(agent: str, facts: Sequence[TrialFact], k: int, basis: Basis, critical: bool) -> Line:
    graded = [fact for fact in facts if fact.row.result in ("pass", "fail")]
    attempted = [fact for fact in facts if fact.row.counts_as != "not attempted"]
    counted = attempted if basis == "strict" else graded
    runs = {
        (fact.row.task, fact.row.run): (fact.row.critical if critical else fact.row.result) == "pass"
        for fact in counted
        if not critical or fact.row.critical != "none"
    }
    events: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for fact in graded:
        events.setdefault(fact.row.task, []).append(fact.row.severe_harm_events)
        most[fact.row.task] = fact.severe_most
    rate, interval = events_per_task(list(events.values()), [most[task] for task in events])
    costs = [fact.cost for fact in graded]
    known = [cost for cost in costs if cost is not None]
    waiting = sum(to_regrade(fact.row) for fact in facts)
    again = sum(to_run_again(fact.row) for fact in facts)
    return Line(
        agent=agent,
        rank=None,
        figures=all_conventions(list(counts_by_task(facts, basis=basis, critical=critical).values()), k),
        strict=pass_at_1(counts_by_task(facts, basis="strict").values()),
        critical=pass_at_1(counts_by_task(facts, critical=True).values()),
        spread=spread_over_runs(runs).sd,
        tasks=len({fact.row.task for fact in counted}),
        attempted=len(attempted),
        graded=len(graded),
        ungraded=sum(fact.row.result == "ungraded" for fact in facts) - waiting - again,
        to_regrade=waiting,
        to_run_again=again,
        invalid=sum(fact.row.counts_as == "invalid" for fact in facts),
        unfinished=len(facts) - len(attempted),
        severe=sum(fact.row.severe_harm_events for fact in graded),
        severe_rate=rate,
        severe_interval=interval,
        calls=sum(fact.calls for fact in graded) / len(graded) if graded else None,
        cost=sum(known) / len(known) if known and len(known) == len(costs) else None,
    )


def difference_words(tasks: int) -> str:
    """What the set can and cannot show, in words."""
    points = 100 * detectable_difference(tasks)
    if points > 70:
        return "This set is too small to show a difference between two agents."
    order = (
        f"Under {FEWEST_RANKED} tasks: listed by name, not ranked."
        if tasks < FEWEST_RANKED
        else "Rows closer than that are not told apart."
    )
    return f"Smallest difference this set can show: {points:.0f} points (80% power, paired over tasks). {order}"


def percent(value: float | None) -> str:
    """ "44.4", in percent; a dash where there is none."""
    return "–" if value is None else f"{100 * value:.1f}"


def interval_words(one: Estimate) -> str:
    """ "44.4% (28.9 to 60.7)"."""
    if one.value is None or one.interval is None:
        return "none"
    return f"{percent(one.value)}% ({percent(one.interval.low)} to {percent(one.interval.high)})"


def bar(one: Estimate, shape: str) -> Markup:
    """The figure on an axis from 0 to 100 with its interval; the shape tells the figures apart without color."""
    if one.value is None or one.interval is None:
        return tag("div", tag("span", "no task has the runs", cls="xs mute"), cls="iv")
    low, high = 100 * one.interval.low, 100 * one.interval.high
    return tag(
        "div",
        tag("div", "", cls="iv-line", style=f"left:{low:.2f}%;width:{high - low:.2f}%"),
        tag("div", "", cls=f"iv-mark {shape}", style=f"left:{100 * one.value:.2f}%"),
        cls="iv",
        role="img",
        aria_label=f"{one.name}: {interval_words(one)}, 95% interval over {one.tasks} tasks",
        title=f"{one.name}, {one.formula}: {interval_words(one)}, {one.tasks} tasks",
    )


def _axis(formula: str) -> Markup:
    marks = [tag("span", str(at), style=f"left:{at}%") for at in (0, 25, 50, 75, 100)]
    return tag("div", tag("div", formula, cls="xs mono-formula"), tag("div", join(marks), cls="axis"))


def table(found: Sequence[Line], k: int) -> Markup:
    """The leaderboard. pass@k and pass^k are drawn unbiased, the plug-in figure stands under each number."""
    several = k > 1
    heads = [
        tag("th", "Agent", scope="col"),
        tag("th", "pass@1", tag("div", "± = over runs", cls="xs"), scope="col", cls="num"),
        tag("th", _axis("c/n"), scope="col"),
    ]
    if several:
        heads += [
            tag("th", f"pass@{k}", tag("div", "plug-in below", cls="xs"), scope="col", cls="num"),
            tag("th", _axis(f"1 − C(n−c,{k})/C(n,{k})"), scope="col"),
            tag("th", f"pass^{k}", tag("div", "plug-in below", cls="xs"), scope="col", cls="num"),
            tag("th", _axis(f"C(c,{k})/C(n,{k})"), scope="col"),
        ]
    heads += [
        tag("th", name, tag("div", below, cls="xs"), scope="col", cls="num")
        for name, below in (("Severe harm", "events"), ("Tool calls", "a run"), ("Cost", "a run"))
    ]
    rows = []
    for one in found:
        figures = one.figures
        spread = f" ± {100 * one.spread:.1f}" if one.spread is not None else ""
        name = tag(
            "th",
            tag("span", f"{one.rank}. " if one.rank else "", cls="mute"),
            one.agent,
            tag("span", " control", cls="xs mute") if one.control else None,
            scope="row",
        )
        cells = [
            name,
            tag("td", tag("b", percent(figures[0].value)), tag("span", spread, cls="mute"), cls="num nowrap"),
            tag("td", bar(figures[0], "disc")),
        ]
        if several:
            for place, shape in ((1, "diamond"), (3, "ring")):
                number = tag("b", percent(figures[place].value))
                plain = tag("div", percent(figures[place + 1].value), cls="xs mute")
                cells += [tag("td", number, plain, cls="num"), tag("td", bar(figures[place], shape))]
        cost = "unknown" if one.cost is None else f"${one.cost:,.2f}"
        cells += [
            tag("td", f"{one.severe:,}", cls="num warn b" if one.severe else "num"),
            tag("td", "–" if one.calls is None else f"{one.calls:,.1f}", cls="num"),
            tag("td", cost, cls="num"),
        ]
        rows.append(tag("tr", join(cells)))
    body = tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid figures board")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Leaderboard")


def formulas(k: int) -> Markup:
    """Every figure by its formula, in words."""
    words = [
        ("pass@1", "c/n", "the mean over tasks of the share of graded runs that passed"),
        (f"pass@{k} unbiased", f"1 − C(n−c,{k})/C(n,{k})", f"the chance that {k} runs drawn hold a pass"),
        (f"pass@{k} plug-in", f"1 − (1 − c/n)^{k}", f"the same from the rate; the paper's pass@{k}"),
        (
            f"pass^{k} unbiased",
            f"C(c,{k})/C(n,{k})",
            f"the chance that {k} runs drawn all passed; the paper's pass^{k}",
        ),
        (f"pass^{k} plug-in", f"(c/n)^{k}", "the same from the rate"),
    ]
    if k < 2:
        words = words[:1]
    rows = [tag("li", tag("b", name), f" = {formula}: {told}.") for name, formula, told in words]
    rows.append(tag("li", "n: the graded runs of a task, c: those that passed. Each task weighs the same."))
    return tag("ul", join(rows), cls="list sm")


def conventions(found: Sequence[Line], k: int) -> Markup:
    """Every convention with its interval, as text."""
    names = [one.name for one in found[0].figures] if found else []
    if k < 2:
        names = names[:1]
    heads = [tag("th", name, scope="col", cls="num" if n else None) for n, name in enumerate(["Agent", *names])]
    rows = []
    for one in found:
        left = one.figures[1].left_out if k > 1 else 0
        note = tag("div", f"{left} tasks with fewer than {k} runs give none", cls="xs warn") if left else None
        uneven = tag("div", "tasks differ in runs", cls="xs mute") if one.figures[0].unequal else None
        cells = [tag("td", interval_words(figure), cls="num") for figure in one.figures[: len(names)]]
        rows.append(tag("tr", tag("th", one.agent, note, uneven, scope="row"), join(cells)))
    body = tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid figures")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Every convention")


def denominators(found: Sequence[Line]) -> Markup:
    """What each rate is a rate of, and what else came of it."""
    heads = (
        "Agent", "Attempted", "Graded", "Needs physician", "To regrade", "To run again", "Invalid", "Not finished",
        "Strict pass@1", "Critical pass", "Severe harm a run",
    )  # fmt: skip
    rows = []
    for one in found:
        harm = "–"
        if one.severe_rate is not None and one.severe_interval is not None:
            low, high = one.severe_interval.low, one.severe_interval.high
            harm = f"{one.severe_rate:.2f} ({low:.2f} to {high:.2f})"
        numbers = [
            one.attempted, one.graded, one.ungraded, one.to_regrade, one.to_run_again, one.invalid, one.unfinished,
        ]  # fmt: skip
        cells = [tag("td", f"{number:,}", cls="num") for number in numbers]
        cells += [tag("td", interval_words(figure), cls="num nowrap") for figure in (one.strict, one.critical)]
        cells.append(tag("td", harm, cls="num nowrap"))
        rows.append(tag("tr", tag("th", one.agent, scope="row"), join(cells)))
    head = tag("tr", join(tag("th", name, scope="col", cls="num" if n else None) for n, name in enumerate(heads)))
    body = tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Denominators")


def chips(found: Sequence[Line]) -> list[Markup]:
    """The denominators of the whole set for the page's header."""
    total = {
        name: sum(getattr(one, name) for one in found)
        for name in ("attempted", "graded", "ungraded", "to_regrade", "to_run_again", "invalid", "unfinished")
    }
    made = [theme.chip(f"{total['attempted']:,} attempted"), theme.chip(f"{total['graded']:,} graded")]
    states: list[tuple[str, str, theme.Tone, str]] = [
        ("ungraded", "need a physician", "gray", "hourglass_empty"),
        ("to_regrade", "to regrade", "orange", "history"),
        ("to_run_again", "to run again", "orange", "history"),
        ("invalid", "invalid", "orange", "warning"),
        ("unfinished", "not finished", "blue", "progress_activity"),
    ]
    made += [theme.chip(f"{total[name]:,} {words}", tone, icon) for name, words, tone, icon in states if total[name]]
    return made
