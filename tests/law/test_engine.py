"""The engine of python-statemachine runs the charts and agrees with the compiled steps."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statemachine import State, StateMachine
from statemachine.exceptions import TransitionNotAllowed

from relist import inputs as i
from relist import session
from relist.check.chart_worlds import LinkWorld, ListenWorld
from relist.check.explore import Explorable, explore
from relist.check.world import World
from relist.check.worlds import FEATURES, by_name
from relist.policy import Policy
from relist.values import Carrier, Channel, Wire, new_listen
from support import altered
from support.laws import ALL, CATALOG, LINK, LISTEN, POLICIES, Chart, named, wander
from support.play import SETTINGS, Play, Setting

pytestmark = pytest.mark.thorough
CHOICES = st.binary(max_size=60) | st.binary(min_size=30, max_size=60)


class Case(NamedTuple):
    """What one event carries: its state before, what was heard, the policy."""

    state: Any
    heard: Any
    policy: Policy


class Parted(AssertionError):
    """The engine did not do what ``step`` did."""


class Host:
    """The engine's model: its names are the rules', and it keeps what the last action made."""

    def __init__(self, phase: Any) -> None:
        self.phase = phase
        self.made: Any = None


def _guard(rule: Callable[..., bool]) -> Callable[..., bool]:
    def holds(_: Host, case: Case) -> bool:
        return rule(*case)

    return holds


def _action(rule: Callable[..., Any]) -> Callable[..., None]:
    def act(self: Host, case: Case, target: State) -> None:
        self.made = rule(*case, target.value)

    return act


def host_class(chart: Chart) -> type[Host]:
    """A model class with one method for each guard and each action that the chart names."""
    members: dict[str, Any] = {}
    for row in chart.table.values():
        for cell in row.values():
            for guard, _, action in cell.names:
                if guard:
                    members[guard] = _guard(_rule(chart, guard))
                if action:
                    members[action] = _action(_rule(chart, action))
    return type("Host", (Host,), members)


def _rule(chart: Chart, name: str) -> Callable[..., Any]:
    rule: Callable[..., Any] = next(
        vars(module)[name] for module in chart.law if name in vars(module)
    )
    return rule


HOSTS: dict[str, type[Host]] = {}


def engine(chart: Chart, phase: Any) -> tuple[StateMachine, Host]:
    """The chart on the engine, in this phase."""
    made = HOSTS.setdefault(chart.chart.__name__, host_class(chart))
    host = made(phase)
    return chart.chart(host, state_field="phase", start_value=phase), host


def event_of(heard: Any) -> str:
    """``ListChangedHeard`` is the event list_changed_heard."""
    name = type(heard).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def run(chart: Chart, machine: StateMachine, host: Host, case: Case) -> tuple[Any, ...]:
    """What the engine makes of it; where it knows no transition, the default of the cell."""
    host.made = None
    before, cell = host.phase, chart.table[type(case.heard)][host.phase]
    try:
        machine.send(event_of(case.heard), case=case)
    except TransitionNotAllowed:
        assert cell.because, "the engine refuses what the chart declares"
        assert host.phase == before
        return tuple(chart.step(*case))
    assert not cell.because, "the engine does what the chart leaves to a default"
    return (case.state, ()) if host.made is None else tuple(host.made)


def in_lockstep(chart: Chart) -> Callable[..., Any]:
    """``step`` of this chart, which raises Parted where the engine does anything else."""
    machine, host = engine(chart, chart.start[0].phase)

    def step(state: Any, heard: Any, rules: Policy) -> Any:
        machine.current_state_value = state.phase
        case = Case(state, heard, rules)
        ours, theirs = chart.step(*case), run(chart, machine, host, case)
        if theirs != tuple(ours) or host.phase is not ours.state.phase:
            raise Parted(f"{case}: step says {ours}, the engine {theirs}, {host.phase}")
        return ours

    return step


@ALL
def test_the_chart_instantiates(chart: Chart) -> None:
    """Unknown guard and action names only show then."""
    machine, host = engine(chart, next(iter(chart.phases)))
    assert named(chart) <= set(dir(host))
    assert machine.current_state_value == next(iter(chart.phases))


# --- on every state and input of a cell, of a world -----------------------------------------------


@ALL
def test_engine_and_step_agree_on_every_cell(chart: Chart) -> None:
    """Every input of the alphabet, on a few states of every phase."""
    dice, reached, seen = Random(1), set[int](), set[tuple[Any, type]]()
    step = in_lockstep(chart)
    for rules in POLICIES * 5:
        met = {state.phase: state for state in wander(chart, rules, dice, reached)}
        for state in met.values():
            for heard in chart.alphabet(state, 1_000, rules):
                step(state, heard, rules)
                seen.add((state.phase, type(heard)))
    assert len(seen) == chart.declared + chart.default, "cells were not visited"


NIGHTLY = pytest.mark.nightly
SMALL = ("one page", "no push, only reads")
LARGER = tuple(setting.name for setting in FEATURES if setting.name not in SMALL)


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=NIGHTLY) for name in LARGER)])
def test_engine_and_step_agree_on_all_of_a_world_of_one_catalog(name: str) -> None:
    """Whatever is explored is stepped by both: every catalog that occurs, with all it can hear."""
    report = explore(World(by_name(name), in_lockstep(CATALOG)))
    assert report.complete
    assert report.counterexample is None


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(LinkWorld(Wire.PIPE, step=in_lockstep(LINK)), id="link over a pipe"),
        pytest.param(
            LinkWorld(Wire.HTTP, step=in_lockstep(LINK)), id="link over http", marks=NIGHTLY
        ),
        pytest.param(ListenWorld(step=in_lockstep(LISTEN)), id="listen"),
    ],
)
def test_engine_and_step_agree_on_all_of_the_other_worlds(world: Explorable[Any]) -> None:
    report = explore(world)
    assert report.complete
    assert report.counterexample is None


# --- on runs that Hypothesis makes ----------------------------------------------------------------


@ALL
@given(choices=CHOICES, rules=st.sampled_from(POLICIES))
def test_engine_and_step_agree_on_a_run(chart: Chart, choices: bytes, rules: Policy) -> None:
    """Same phase, same state, same effects; the engine goes its own way from the first phase."""
    state, now_ms = chart.start[len(choices) % len(chart.start)], 1_000
    machine, host = engine(chart, state.phase)
    for choice in choices:
        options = chart.alphabet(state, now_ms, rules)
        case = Case(state, options[choice % len(options)], rules)
        ours, theirs = chart.step(*case), run(chart, machine, host, case)
        assert theirs == tuple(ours)
        assert host.phase is machine.current_state_value is ours.state.phase
        state, now_ms = ours.state, case.heard.now_ms + (0, 1, 50, 400)[choice % 4]


def play_in_lockstep(setting: Setting, script: bytes, catalog: Chart = CATALOG) -> None:
    """All three machines of a whole session, against a server that does what it likes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "step", in_lockstep(catalog))
        patch.setattr(session, "step_link", in_lockstep(LINK))
        patch.setattr(session, "step_listen", in_lockstep(LISTEN))
        play = Play(setting)
        play.run()
        for choice in script:
            play.act(choice)


@given(setting=st.sampled_from(SETTINGS), script=st.binary(max_size=40))
def test_engine_and_step_agree_in_a_play(setting: Setting, script: bytes) -> None:
    play_in_lockstep(setting, script)


# --- the comparison bites -------------------------------------------------------------------------


def test_a_wrong_engine_is_noticed() -> None:
    """A host whose guard is wrong disagrees."""
    made = type("Wrong", (host_class(LISTEN),), {"must_ask": lambda _, case: False})
    listen = new_listen()
    host = made(listen.phase)
    machine = LISTEN.chart(host, state_field="phase", start_value=listen.phase)
    heard = i.PushWanted(frozenset(Channel), Carrier.STREAM, 0)
    with pytest.raises(AssertionError, match="refuses what the chart declares"):
        run(LISTEN, machine, host, Case(listen, heard, POLICIES[0]))


WRONG = pytest.mark.parametrize(
    "rules",
    [
        pytest.param(altered.DROPPED_DOUBT, id="a notice is dropped"),
        pytest.param(altered.FORGOTTEN_REWALK, id="a walk is not spoiled"),
        pytest.param(altered.EARLY, id="walks begin early"),
    ],
)


@WRONG
def test_a_wrong_step_is_noticed_in_a_world(rules: altered.Rules) -> None:
    wrong = in_lockstep(CATALOG._replace(step=altered.altered(rules)))
    with pytest.raises(Parted):
        explore(World(by_name("one page"), wrong))


@WRONG
def test_a_wrong_step_is_noticed_in_a_play(rules: altered.Rules) -> None:
    wrong = CATALOG._replace(step=altered.altered(rules))
    with pytest.raises(Parted):
        play_in_lockstep(SETTINGS[0], Random(1).randbytes(400), wrong)
