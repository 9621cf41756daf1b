"""The pure session against a model server: storms, changes between pages, reconnects, lateness.

Two drivers over one play (``support.play``). Rules read well and say what happened; bytes, one a
step, find and shrink faster. Both check every promise after every step and end with a quiet server,
which everything must converge on.
"""

from collections import Counter
from collections.abc import Callable
from functools import wraps
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import Phase as Step
from hypothesis import given, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from relist.check import invariants, isolation
from relist.check.edge import Edge
from relist.check.isolation import SessionEdge
from relist.effects import Effect, Note
from relist.inputs import CatalogInput, ReadWanted
from relist.values import Doubt, LinkPhase, ListenPhase, Phase
from support.faults import FAULTS, UNSEEN, Fault
from support.play import FAMILIES, SETTINGS, Play, Setting, Violation

# Long scripts find, short ones are what a found one shrinks to.
SCRIPTS = st.binary(max_size=150) | st.binary(min_size=60, max_size=150)
CHOICES = st.integers(0, 255)


def play_script(setting: Setting, settled: bool, script: bytes) -> None:
    """One run: perhaps converged first, then the script, then convergence."""
    play = Play(setting)
    if settled:
        play.settle()
    for choice in script:
        play.act(choice)
    play.settle()


TOLD: set[str] = set()  # the families that the rules below do


def does(*families: str) -> Callable[[Callable[..., None]], Any]:
    """A rule: something of these families that is possible. What it is, its docstring says."""
    TOLD.update(families)

    def possible(machine: Any) -> list[str]:
        known = hasattr(machine, "play")
        return [name for name in families if known and machine.play.possible(name)]

    def rule_of(scene: Callable[..., None]) -> Any:
        @wraps(scene)
        def act(machine: Any, choice: int) -> None:
            names = possible(machine)
            machine.play.act_in(names[choice % len(names)], choice // len(names))

        return precondition(lambda machine: bool(possible(machine)))(rule(choice=CHOICES)(act))

    return rule_of


class SessionMachine(RuleBasedStateMachine):
    """Each rule is a kind of scene; a choice picks one of those that are possible."""

    @initialize(setting=st.sampled_from(SETTINGS), settled=st.booleans())
    def begin(self, setting: Setting, settled: bool) -> None:
        """A setting, connected and listed or not yet."""
        self.play = Play(setting)
        if settled:
            self.play.settle()

    @does("answer")
    def answer(self) -> None:
        """A request is answered, and the answer arrives."""

    @does("run")
    def run(self) -> None:
        """All requests are answered, all answers arrive, links come back, for a while."""

    @does("hold")
    def hold(self) -> None:
        """A request is answered, the answer is held; late requests are answered too."""

    @does("arrive", "again")
    def arrive(self) -> None:
        """An answer or notice arrives, over HTTP out of order, or a second time."""

    @does("fail")
    def fail(self) -> None:
        """A page, a stream, a probe, a handshake or the opening of the transport fails."""

    @does("change", "turn")
    def change(self) -> None:
        """A list changes, in content or only in order."""

    @does("change_between_pages")
    def change_between_pages(self) -> None:
        """A list changes while some of its pages are read and some are not."""

    @does("change_all")
    def change_all(self) -> None:
        """All four kinds change at once, in content or in scope."""

    @does("endless")
    def endless(self) -> None:
        """A list loses its last page, or gets it back."""

    @does("offer")
    def offer(self) -> None:
        """The server has a kind no more, or has it again, and tells nobody."""

    @does("notice")
    def notice(self) -> None:
        """A list changes, and the client hears of it at once."""

    @does("storm", "duplicate")
    def storm(self) -> None:
        """Notice after notice, notices of nothing, the same frame twice."""

    @does("foreign_notice")
    def foreign_notice(self) -> None:
        """Notices for another client, for what is over, without a tag, or never granted."""

    @does("lose")
    def lose(self) -> None:
        """The connection, the session or the stream of notices ends, and may come back."""

    @does("read", "verify", "refresh", "prove")
    def wish(self) -> None:
        """Somebody needs a list, wants it verified or renewed, or proves it stale."""

    @does("subscribe", "update", "adopt")
    def host(self) -> None:
        """What concerns no list: single resources, and what the host gave its model."""

    @does("credentials")
    def credentials(self) -> None:
        """New credentials, of the same partition or of another."""

    @does("expire")
    def expire(self) -> None:
        """A lifetime ends, and in that millisecond somebody needs the list."""

    @does("wait")
    def wait(self) -> None:
        """Time passes, a little or to the next deadline."""

    def teardown(self) -> None:
        """``converges``"""
        if hasattr(self, "play") and not self.play.broken:
            note(self.play.told(40))
            self.play.settle()


TestSession = SessionMachine.TestCase


@given(setting=st.sampled_from(SETTINGS), settled=st.booleans(), script=SCRIPTS)
def test_any_script_keeps_every_promise(setting: Setting, settled: bool, script: bytes) -> None:
    play_script(setting, settled, script)


def test_the_rules_cover_the_families() -> None:
    """No family of actions is missing from the rules."""
    assert set(FAMILIES) == TOLD


def test_scripts_reach_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A play that never comes near the edges would keep every promise, too."""
    dice = Random(1)
    met, notes, told = set[object](), set[str](), Counter[str]()

    def watching(edge: Edge) -> None:
        before, after = edge.before, edge.after
        met.update((after.phase, after.doubt, type(edge.heard)))
        if isinstance(edge.heard, ReadWanted) and before.phase is Phase.FRESH and edge.begins:
            told["expired"] += 1
        if after.walk is not None and after.walk.pages and after.walk.spoiled:
            told["changed between pages"] += 1
        if edge.published is not None and not edge.published.snapshot.clean:
            told["spoiled"] += 1

    def watching_all(edge: SessionEdge) -> None:
        met.update((edge.after.link.phase, edge.after.listen.phase))
        told.update(type(effect).__name__ for effect in edge.effects)
        notes.update(effect.rule for effect in edge.effects if isinstance(effect, Note))
        told["four walks at once"] += all(catalog.walk for catalog in edge.after.catalogs)

    monkeypatch.setattr(invariants, "ALWAYS", {"watch": watching})
    monkeypatch.setattr(isolation, "ISOLATED", {"watch": watching_all})
    for _ in range(80):
        play_script(dice.choice(SETTINGS), dice.random() < 0.5, dice.randbytes(120))
    assert {*Phase, *Doubt, *LinkPhase, *ListenPhase} - met == {LinkPhase.REFUSED}
    assert {effect.__name__ for effect in get_args(Effect)} | {"spoiled"} <= set(told)
    assert set(get_args(CatalogInput)) <= met
    assert min(told[w] for w in ("expired", "changed between pages", "four walks at once")) > 50
    assert {"ATOM-13", "DISC-16", "CAP-16", "CAP-19", "AUTH-03", "LIFE-39"} <= notes
    assert {"SUB-13", "SUB-14", "SUB-15", "SUB-16"} <= notes, "foreign notices"


# --- seeded faults --------------------------------------------------------------------------------

ALL_FAULTS = (*FAULTS, *UNSEEN)
BY_FAULT = pytest.mark.parametrize("fault", ALL_FAULTS, ids=lambda fault: fault.name)


@BY_FAULT
def test_rules_find_a_seeded_fault(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.seed(monkeypatch)
    with pytest.raises(Violation) as found:
        run_state_machine_as_test(SessionMachine, settings=_hunting())
    assert found.value.invariant in fault.caught_by


@BY_FAULT
def test_bytes_find_a_seeded_fault(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    fault.seed(monkeypatch)
    with pytest.raises(Violation) as found:
        _by_bytes()
    assert found.value.invariant in fault.caught_by


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_readers_see_shows_a_seeded_fault(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any look inside: the published list against the server's."""
    monkeypatch.setattr(invariants, "ALWAYS", {})
    monkeypatch.setattr(isolation, "ISOLATED", {})
    fault.seed(monkeypatch)
    with pytest.raises(Violation) as found:
        _by_bytes()
    assert found.value.invariant in {"fresh-is-current", "converges"}


def _hunting() -> settings:
    """The same examples each time, nothing remembered or shrunk, and room for unlucky draws.

    Rules find in 30 examples of the profile's 200, as a rule, and in more than 200 once in thirty.
    """
    return settings(
        max_examples=3 * settings().max_examples,
        phases=[Step.generate],
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        print_blob=False,
    )


def _by_bytes() -> None:
    strategies = {"setting": st.sampled_from(SETTINGS), "settled": st.booleans(), "script": SCRIPTS}
    _hunting()(given(**strategies)(play_script))()


def test_faults_name_promises_that_exist() -> None:
    promises = {*invariants.ALWAYS, *isolation.ISOLATED, "fresh-is-current", "converges"}
    assert {name for fault in ALL_FAULTS for name in fault.caught_by} <= promises
