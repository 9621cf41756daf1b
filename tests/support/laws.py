"""The three machines with all that the law tests need of them, and a walk over their states."""

from collections.abc import Callable, Iterator
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from statemachine import StateMachine

from relist import charts, machine, policy
from relist.inputs import CatalogInput, LinkInput, ListenInput
from relist.rules import connection, doubt, guards, negotiation, push, standing, walk
from relist.values import (
    Kind,
    LinkPhase,
    ListenPhase,
    Phase,
    Wire,
    new_catalog,
    new_link,
    new_listen,
)
from support import alphabet
from support.one import SEED

CATALOG_LAW = (guards, standing, doubt, walk)


class Chart(NamedTuple):
    """One of the three machines, with all that the tests need of it."""

    chart: type[StateMachine]
    table: machine.Table
    phases: Any
    inputs: Any
    law: tuple[ModuleType, ...]
    defaults: dict[tuple[str, str], tuple[str, str]]
    step: Callable[..., Any]
    start: Any
    alphabet: Callable[..., Any]
    declared: int
    default: int


CATALOG = Chart(
    charts.CatalogChart,
    machine.CATALOG_TABLE,
    Phase,
    CatalogInput,
    CATALOG_LAW,
    charts.CATALOG_DEFAULTS,
    machine.step,
    (new_catalog(Kind.TOOLS, "A"),),
    alphabet.for_catalog,
    declared=70,
    default=35,
)
LINK = Chart(
    charts.LinkChart,
    machine.LINK_TABLE,
    LinkPhase,
    LinkInput,
    (connection, negotiation),
    charts.LINK_DEFAULTS,
    machine.step_link,
    (new_link(Wire.PIPE), new_link(Wire.HTTP)),
    alphabet.for_link,
    declared=37,
    default=59,
)
LISTEN = Chart(
    charts.ListenChart,
    machine.LISTEN_TABLE,
    ListenPhase,
    ListenInput,
    (push,),
    charts.LISTEN_DEFAULTS,
    machine.step_listen,
    (new_listen(),),
    alphabet.for_listen,
    declared=19,
    default=6,
)
ALL = pytest.mark.parametrize("chart", [CATALOG, LINK, LISTEN], ids=["catalog", "link", "listen"])


POLICIES = (
    policy.Policy(seed=SEED, pages_max=2, items_max=4, spoiled_in_row_max=2),
    policy.Policy(seed=SEED, lazy=True),
    policy.Policy(seed=SEED, modern_versions=(), poll_ms=60),
    policy.Policy(seed=SEED, legacy_versions=()),
)
PAUSES = (0, 0, 1, 50, 400)


def cells(chart: Chart) -> Iterator[machine.Cell]:
    return (cell for row in chart.table.values() for cell in row.values())


def named(chart: Chart) -> set[str]:
    names = {
        name for cell in cells(chart) for guard, _, action in cell.names for name in (guard, action)
    }
    return names - {""}


def check_guards(chart: Chart, state: Any, heard: Any, rules: policy.Policy) -> machine.Row:
    rows = chart.table[type(heard)][state.phase].rows
    holding = [row for row in rows if row.guard is None or row.guard(state, heard, rules)]
    assert len(holding) == 1, (state.phase, heard, [row.guard for row in holding])
    return holding[0]


def wander(chart: Chart, rules: policy.Policy, dice: Random, reached: set[int]) -> list[Any]:
    """The states of a walk that prefers new rows; every guard is tried on every state it meets."""
    state, now_ms = dice.choice(chart.start), 1_000
    met: list[Any] = []
    for _ in range(150):
        met.append(state)
        options: dict[str, list[Any]] = {}
        news: list[Any] = []
        for heard in chart.alphabet(state, now_ms, rules):
            row = id(check_guards(chart, state, heard, rules))
            if row not in reached:
                news.append(heard)
            if not chart.table[type(heard)][state.phase].because:
                options.setdefault(type(heard).__name__, []).append(heard)
        heard = dice.choice(news or options[dice.choice(list(options))])
        reached.add(id(check_guards(chart, state, heard, rules)))
        state, now_ms = chart.step(state, heard, rules).state, heard.now_ms + dice.choice(PAUSES)
    return met
