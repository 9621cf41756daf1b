"""Mutants of the compiled tables: one row of a chart gone wrong, looked for in the small worlds.

A mutant is killed by the promises of a world: an exploration finds a counterexample, the step
raises, or something that happens in that world happens no more. Nothing pinned takes part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from attrs import evolve

from relist.check.chart_worlds import POLICY, LinkWorld, ListenWorld
from relist.check.explore import Explorable, Report, explore
from relist.check.rows import row_name
from relist.check.setting import OFFERS, Setting
from relist.check.world import World
from relist.check.worlds import ENVIRONMENTS, FEATURES, by_name
from relist.machine import CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE, Cell, Row, Table
from relist.rules import connection, push, walk
from relist.values import Wire

Stepper = Callable[[Any, Any, Any], Any]
MakeWorld = Callable[..., Explorable[Any]]
"""A world, given the step and (else all) the checks."""

GROWTH = 4
"""How many times more scenes than the true law needs are looked at before giving up."""


MORE = {
    "capabilities": ("server stops to promise notices",),
    "lazy": ("server still has no such kind",),
    "one page": ("preceded by push",),
}
"""Offers and grants that are possible in a small world besides, because there they cost little."""


LAZY = evolve(
    by_name("no push, only reads"),
    name="lazy without push",
    grants=("without push", "without push, at another version"),
    policy=evolve(by_name("lazy").policy, unvouched_lifetime_ms=1),
)


def _small(setting: Setting) -> Setting:
    """The same with one page and one notice at a time."""
    name, more = setting.name, MORE.get(setting.name, ())
    offers = tuple(one for one in more if one in OFFERS)
    grants = tuple(one for one in more if one not in OFFERS)
    return evolve(
        setting,
        name=f"small {name}",
        pages=1,
        wire=1,
        cuts=name in ("one page", LAZY.name),
        offers=(*setting.offers, *offers),
        grants=(*setting.grants, *grants),
    )


SMALL = tuple(_small(setting) for setting in (*FEATURES, LAZY) if not setting.endless)
"""The features once more, as small as they can be: most faults show here already."""


class Chart(NamedTuple):
    """A table, the action that does nothing in it, and the worlds that look at it."""

    table: Table
    nothing: Callable[..., Any]
    worlds: tuple[MakeWorld, ...]


CHARTS: Mapping[str, Chart] = {
    "catalog": Chart(
        CATALOG_TABLE,
        walk.nothing,
        tuple(partial(World, setting) for setting in (*SMALL, *ENVIRONMENTS, *FEATURES)),
    ),
    "link": Chart(
        LINK_TABLE,
        connection.nothing,
        (partial(LinkWorld, Wire.PIPE, POLICY), partial(LinkWorld, Wire.HTTP, POLICY)),
    ),
    "listen": Chart(LISTEN_TABLE, push.nothing, (partial(ListenWorld, POLICY),)),
}


class Mutant(NamedTuple):
    """One cell with other rows. ``row`` is the one that is wrong, ``what`` how.

    ``felt``: it can make a difference only where one of these rows should run.
    """

    row: str
    what: str
    felt: frozenset[str]
    heard: type[Any]
    phase: Any
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """What lists call it."""
        return f"{self.row}: {self.what}"


# --- making them ----------------------------------------------------------------------------------


def mutants(chart: Chart) -> Iterator[Mutant]:
    """Every mutant of every declared row."""
    for heard, cells in chart.table.items():
        for phase, cell in cells.items():
            if not cell.because:
                names = [row_name(phase, heard, name) for name in cell.names]
                for at, what, felt, rows in _of_cell(chart, phase, cell):
                    yield Mutant(
                        names[at], what, frozenset(names[one] for one in felt), heard, phase, rows
                    )


def _of_cell(
    chart: Chart, phase: Any, cell: Cell
) -> Iterator[tuple[int, str, Iterable[int], tuple[Row, ...]]]:
    """Which row is wrong, how, in the place of which rows that is felt, and all rows."""
    rows = cell.rows
    everywhere = range(len(rows))
    for at in everywhere:
        for what, other in _of_row(chart, phase, rows, at):
            felt = (at,) if other.guard is rows[at].guard else everywhere
            yield at, what, felt, (*rows[:at], other, *rows[at + 1 :])
    for one, two in combinations(everywhere, 2):
        if rows[one].action is not rows[two].action:
            what = f"acts as {cell.names[two][2] or 'nothing'} does, and the reverse"
            yield one, what, (one, two), _swapped(rows, one, two)


def _of_row(chart: Chart, phase: Any, rows: Sequence[Row], at: int) -> Iterator[tuple[str, Row]]:
    guard, target, action = rows[at]
    for other in type(phase):
        if other is not target:
            yield f"goes to {other.value}", Row(guard, other, _elsewhere(action))
    if action is not chart.nothing:
        yield "does nothing", Row(guard, phase, chart.nothing)
        if target is not phase:
            yield "only goes", Row(guard, target, _elsewhere(chart.nothing))
    siblings = {row.action: row for row in rows if row.action not in (action, chart.nothing)}
    for sibling in siblings:
        yield f"acts as {sibling.__name__}", Row(guard, target, sibling)
    if guard is not None and len(rows) > 1:
        following = rows[(at + 1) % len(rows)]
        yield "falls to the next row", Row(guard, following.target, following.action)
        yield "holds when it should not", Row(_negated(guard), target, action)
        if at + 1 < len(rows):  # the last row holds whenever it is come to: see test_table
            yield "holds always", Row(None, target, action)


def _swapped(rows: tuple[Row, ...], one: int, two: int) -> tuple[Row, ...]:
    swapped = list(rows)
    swapped[one] = rows[one]._replace(action=rows[two].action)
    swapped[two] = rows[two]._replace(action=rows[one].action)
    return tuple(swapped)


def _elsewhere(action: Callable[..., Any]) -> Callable[..., Any]:
    """The action, ending in the phase it is given even if it does not look at it."""

    def act(state: Any, heard: Any, policy: Any, to: Any) -> Any:
        step = action(state, heard, policy, to)
        return step if step.state.phase is to else step._replace(state=evolve(step.state, phase=to))

    return act


def _negated(guard: Callable[..., bool]) -> Callable[..., bool]:
    return lambda *args: not guard(*args)


def stepper(chart: Chart, mutant: Mutant | None = None) -> Stepper:
    """The step of the chart, with one cell replaced."""

    def step(state: Any, heard: Any, policy: Any) -> Any:
        rows = chart.table[type(heard)][state.phase].rows
        if mutant is not None and type(heard) is mutant.heard and state.phase is mutant.phase:
            rows = mutant.rows
        for guard, target, action in rows:
            if guard is None or guard(state, heard, policy):
                return action(state, heard, policy, target)
        raise AssertionError(f"no row holds for {heard}")

    return step


# --- looking for them -----------------------------------------------------------------------------


class Ground(NamedTuple):
    """A world, and what the true law comes to in it."""

    make: MakeWorld
    report: Report


def grounds(chart: Chart) -> list[Ground]:
    """The worlds of a chart, the smallest first. Raises AssertionError if the law fails in one."""
    found = [Ground(make, explore(make(stepper(chart)))) for make in chart.worlds]
    assert all(ground.report.complete and not ground.report.counterexample for ground in found)
    return sorted(found, key=lambda ground: ground.report.scenes)


def judge(chart: Chart, mutant: Mutant, known: Sequence[Ground]) -> str:
    """What kills the mutant in the first world that does; else "survived" or "unfinished"."""
    verdict = "survived"
    for ground in known:
        if mutant.felt & ground.report.reached:
            found = _look(ground, stepper(chart, mutant))
            if found not in {"survived", "unfinished"}:
                return f"{found} ({ground.report.world})"
            verdict = max(verdict, found)
    return verdict


def _look(ground: Ground, step: Stepper) -> str:
    try:
        report = explore(ground.make(step), scenes_max=GROWTH * ground.report.scenes)
    except Exception as error:  # a mutant may break anything
        return f"raises {type(error).__name__}"
    if report.counterexample is not None:
        return report.counterexample.claim
    if not report.complete:
        return "unfinished"
    missing = ground.report.reached - report.reached
    return f"never happens: {min(missing)}" if missing else "survived"
