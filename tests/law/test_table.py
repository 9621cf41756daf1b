"""The three charts as tables: total, justified, without dead rules, and deterministic."""

import inspect
from random import Random
from types import ModuleType

import pytest
from statemachine import State, StateMachine

from relist import charts, machine
from relist.rules import guards, push
from relist.values import ListenPhase
from support.laws import ALL, POLICIES, Chart, cells, named, wander


@ALL
def test_every_phase_and_input_has_a_cell(chart: Chart) -> None:
    classes = set(chart.inputs.__args__)
    assert set(chart.table) == classes
    for heard, row in chart.table.items():
        assert set(row) == set(chart.phases), heard.__name__


@ALL
def test_cells_are_counted(chart: Chart) -> None:
    """A new phase or input shows up here, so that its cells are decided and not overlooked."""
    declared = [cell for cell in cells(chart) if not cell.because]
    defaults = [cell for cell in cells(chart) if cell.because]
    assert (len(declared), len(defaults)) == (chart.declared, chart.default)
    assert chart.declared + chart.default == len(chart.phases) * len(chart.inputs.__args__)


@ALL
def test_every_default_has_a_reason_and_changes_nothing(chart: Chart) -> None:
    for (phase, heard), (action, because) in chart.defaults.items():
        assert because.strip(), (phase, heard)
        assert action in {"nothing", "note_late", "note_unheeded"}, (phase, heard)
    for cell in cells(chart):
        if cell.because:
            (row,) = cell.rows
            assert row.guard is None


@ALL
def test_every_default_stands_for_a_cell(chart: Chart) -> None:
    events = {
        str(event) for state in chart.chart.states for t in state.transitions for event in t.events
    }
    phases = {state.id for state in chart.chart.states}
    for phase, heard in chart.defaults:
        assert phase in phases
        assert heard in events


@ALL
def test_the_states_of_the_chart_are_the_phases(chart: Chart) -> None:
    assert {state.value for state in chart.chart.states} == set(chart.phases)
    assert {state.id for state in chart.chart.states} == {p.value for p in chart.phases}


@ALL
def test_rows_without_a_guard_stand_alone(chart: Chart) -> None:
    for cell in cells(chart):
        if len(cell.rows) > 1:
            assert all(row.guard is not None for row in cell.rows), cell.names


# --- names ----------------------------------------------------------------------------------------

HELPERS = {
    "wake_ms": "asked by deadline_ms as well as by a guard",
    "judge_probe": "the verdict that several guards of the link share",
    "shared": "version choice, shared by guards and actions of the link",
}


def defined(module: ModuleType) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


@ALL
def test_no_rule_is_dead(chart: Chart) -> None:
    rules = {name for module in chart.law for name in defined(module)}
    assert rules - named(chart) - set(HELPERS) == set()


@ALL
def test_every_name_means_one_thing(chart: Chart) -> None:
    """A name found in two modules of one law would silently mean the first."""
    for name in named(chart):
        found = {id(vars(module)[name]) for module in chart.law if name in vars(module)}
        assert len(found) == 1, name


@ALL
def test_every_rule_says_what_it_is(chart: Chart) -> None:
    for module in chart.law:
        for name in defined(module):
            assert inspect.getdoc(getattr(module, name)), (module.__name__, name)


def test_a_cell_cannot_be_forgotten() -> None:
    missing = {cell: why for cell, why in charts.LISTEN_DEFAULTS.items() if cell[0] != "open"}
    with pytest.raises(ValueError, match=r"\(open, push_opened\) must be declared or a default"):
        machine.compile_chart(charts.ListenChart, missing, (push,))


def test_a_cell_cannot_be_declared_and_a_default() -> None:
    twice = {**charts.LISTEN_DEFAULTS, ("off", "push_wanted"): ("nothing", "no")}
    with pytest.raises(ValueError, match=r"\(off, push_wanted\) must be declared or a default"):
        machine.compile_chart(charts.ListenChart, twice, (push,))


class TwoGuards(StateMachine):
    """A row that says less clearly when it holds."""

    resting = State(value=ListenPhase.RESTING, initial=True)
    time_passed = resting.to(resting, internal=True, cond=["due", "not_due"])


def test_a_row_has_one_guard() -> None:
    with pytest.raises(ValueError, match=r"one guard and one action a row: resting \['due', 'not"):
        machine.compile_chart(TwoGuards, {}, (push,))


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(ValueError, match="which no rule defines"):
        machine.compile_chart(charts.ListenChart, charts.LISTEN_DEFAULTS, (guards,))


# --- guards ---------------------------------------------------------------------------------------


ROUNDS = 30  # at least: guards are tried on every state that is met


@pytest.mark.thorough
@ALL
def test_exactly_one_row_holds_and_every_row_is_reached(chart: Chart) -> None:
    """Guards are disjoint and complete; and a law that is right because it does nothing fails.

    The walk is the same each time.
    """
    dice, reached = Random(1), set[int]()
    for done in range(1, 200):
        for rules in POLICIES:
            wander(chart, rules, dice, reached)
        missed = {
            (phase.value, heard.__name__, *names)
            for heard, row in chart.table.items()
            for phase, cell in row.items()
            for one, names in zip(cell.rows, cell.names, strict=True)
            if id(one) not in reached
        }
        if not missed and done >= ROUNDS:
            return
    pytest.fail(f"never reached: {missed}")
