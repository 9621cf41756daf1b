"""Charts compiled to tables, and the one ``step`` that runs a catalog.

The chart is declared once (``charts.py``); at import its introspection becomes a table from (input
class, phase) to rows of (guard, target phase, action). The engine of python-statemachine runs the
same chart in tests and must agree.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any, NamedTuple

from statemachine import State, StateMachine

from relist import inputs
from relist.charts import (
    CATALOG_DEFAULTS,
    LINK_DEFAULTS,
    LISTEN_DEFAULTS,
    CatalogChart,
    LinkChart,
    ListenChart,
)
from relist.inputs import CatalogInput, LinkInput, ListenInput
from relist.policy import Policy
from relist.rules import connection, doubt, guards, negotiation, push, standing, walk
from relist.rules.base import LinkStep, ListenStep, Step, give_up_at_ms
from relist.rules.guards import wake_ms
from relist.values import WALKING, Catalog, Doubt, Link, Listen, Phase, Snapshot


class Row(NamedTuple):
    """One line of a table; ``guard`` None always holds."""

    guard: Callable[..., bool] | None
    target: Any
    action: Callable[..., Any]


class Cell(NamedTuple):
    """All rows of one (phase, input), with the names that the chart gave them, for rendering."""

    rows: tuple[Row, ...]
    names: tuple[tuple[str, str, str], ...]  # (guard, target, action)
    because: str  # why this cell is a default; empty for a declared one


Law = tuple[ModuleType, ...]
Table = Mapping[type[Any], Mapping[Any, Cell]]


def compile_chart(
    chart: type[StateMachine], defaults: Mapping[tuple[str, str], tuple[str, str]], law: Law
) -> Table:
    """The table of a flat chart. Raises ValueError for a cell declared twice, or not at all.

    ``law``: the modules that define the guards and actions which the chart names.
    """
    declared = {state.id: _by_event(state) for state in chart.states}
    table: dict[type[Any], dict[Any, Cell]] = {}
    for name in sorted({name for events in declared.values() for name in events}):
        cells: dict[Any, Cell] = {}
        for state in chart.states:
            rows, default = declared[state.id].get(name, []), defaults.get((state.id, name))
            if bool(rows) is bool(default):
                raise ValueError(f"cell ({state.id}, {name}) must be declared or a default, once")
            cells[state.value] = (
                _default_cell(*default, state, law) if default else _declared_cell(rows, state, law)
            )
        table[_input_class(name)] = cells
    return table


def _by_event(state: State) -> dict[str, list[Any]]:
    """The transitions of this state, in the order of the chart."""
    found: dict[str, list[Any]] = {}
    for transition in state.transitions:
        for event in transition.events:
            found.setdefault(str(event), []).append(transition)
    return found


def _declared_cell(transitions: list[Any], state: State, law: Law) -> Cell:
    rows: list[Row] = []
    names: list[tuple[str, str, str]] = []
    for transition in transitions:
        guards = [str(spec.func) for spec in transition.cond if not spec.is_convention]
        actions = [str(spec.func) for spec in transition.on if not spec.is_convention]
        if len(guards) > 1 or len(actions) > 1:
            raise ValueError(f"one guard and one action a row: {state.id} {guards} {actions}")
        guard, action = (guards or [""])[0], (actions or [""])[0]
        target: State = transition.target or state
        names.append((guard, target.id, action))
        rows.append(
            Row(
                _named(law, guard) if guard else None,
                target.value,
                _named(law, action or "nothing"),
            )
        )
    return Cell(tuple(rows), tuple(names), "")


def _default_cell(action: str, because: str, state: State, law: Law) -> Cell:
    row = Row(None, state.value, _named(law, action))
    return Cell((row,), (("", state.id, action),), because)


def _named(law: Law, name: str) -> Callable[..., Any]:
    found: list[Callable[..., Any]] = [vars(module)[name] for module in law if name in vars(module)]
    if not found:
        raise ValueError(f"the chart names {name}, which no rule defines")
    return found[0]


def _input_class(event: str) -> type[Any]:
    name = "".join(part.capitalize() for part in event.split("_"))
    found: type[Any] = getattr(inputs, name)
    return found


CATALOG_TABLE = compile_chart(CatalogChart, CATALOG_DEFAULTS, (guards, standing, doubt, walk))
LINK_TABLE = compile_chart(LinkChart, LINK_DEFAULTS, (connection, negotiation))
LISTEN_TABLE = compile_chart(ListenChart, LISTEN_DEFAULTS, (push,))

Rows = Mapping[type[Any], Mapping[Any, tuple[Row, ...]]]


def _rows(table: Table) -> Rows:
    return {
        heard: {phase: cell.rows for phase, cell in cells.items()} for heard, cells in table.items()
    }


_CATALOG_ROWS, _LINK_ROWS, _LISTEN_ROWS = map(_rows, (CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE))


def _run(rows: tuple[Row, ...], state: Any, heard: Any, policy: Policy) -> Any:
    for guard, target, action in rows:
        if guard is None or guard(state, heard, policy):
            return action(state, heard, policy, target)
    raise AssertionError(  # pragma: no cover: the law tests forbid it
        f"no row of ({state.phase}, {heard}) holds"
    )


def step(catalog: Catalog, heard: CatalogInput, policy: Policy) -> Step:
    """What this catalog becomes on hearing this, and what it asks for. Pure and total."""
    stepped: Step = _run(_CATALOG_ROWS[heard.__class__][catalog.phase], catalog, heard, policy)
    return stepped


def step_link(link: Link, heard: LinkInput, policy: Policy) -> LinkStep:
    """The same for the connection."""
    stepped: LinkStep = _run(_LINK_ROWS[heard.__class__][link.phase], link, heard, policy)
    return stepped


def step_listen(listen: Listen, heard: ListenInput, policy: Policy) -> ListenStep:
    """The same for the channel that carries notices."""
    stepped: ListenStep = _run(_LISTEN_ROWS[heard.__class__][listen.phase], listen, heard, policy)
    return stepped


def deadline_ms(catalog: Catalog, policy: Policy) -> int | None:
    """When this catalog wants a TimePassed; None: not before something else happens."""
    if catalog.phase in WALKING:
        return give_up_at_ms(catalog)
    if catalog.phase is Phase.STALE:
        return wake_ms(catalog, policy)
    return catalog.pacing.due_at_ms if catalog.phase is Phase.FRESH else None


class Hit(Enum):
    """What a read found. Rule: STATE-12, TTL-02."""

    HIT = "hit"  # usable as it is
    EXPIRED = "expired"  # its lifetime is over
    DOUBTED = "doubted"  # there is a reason to believe it wrong
    MISS = "miss"  # never listed, which is not empty
    UNSUPPORTED = "unsupported"  # the server does not have this kind


class Reading(NamedTuple):
    """What a reader gets: the snapshot (None for miss and unsupported), and how far to trust it.

    ``age_ms`` is counted from the end of the walk that listed it. Rule: FAIL-16.
    """

    hit: Hit
    snapshot: Snapshot | None
    doubt: Doubt | None
    age_ms: int | None


# Looked up once: a member of an Enum costs as much to reach as the rest of a read.
_UNSUPPORTED = Phase.UNSUPPORTED
_HIT, _EXPIRED, _DOUBTED = Hit.HIT, Hit.EXPIRED, Hit.DOUBTED


def read(catalog: Catalog, now_ms: int) -> Reading:
    """Look at a catalog without changing it or causing traffic. Doubt outranks expiry.

    No list is good for ever; expired says that time passed, not that anything changed.
    Rule: NOTE-25, STATE-10, TTL-29.
    """
    if catalog.phase is _UNSUPPORTED:
        return Reading(Hit.UNSUPPORTED, None, None, None)
    snapshot, why = catalog.snapshot, catalog.doubt
    if snapshot is None:
        return Reading(Hit.MISS, None, why, None)
    age_ms = now_ms - snapshot.listed_at_ms
    if why is not None:
        return Reading(_DOUBTED, snapshot, why, age_ms)
    expires_at_ms = snapshot.expires_at_ms
    if expires_at_ms is not None and now_ms >= expires_at_ms:
        return Reading(_EXPIRED, snapshot, None, age_ms)
    return Reading(_HIT, snapshot, None, age_ms)
