"""The pure session against a model server: storms, changes between pages, reconnects, lateness.

Two drivers over one play (``support.play``). Rules read well and say what happened; bytes, one a
step, find and shrink faster. Both check every promise after every step and end with a quiet server,
which everything must converge on.
"""

from collections import Counter
from random import Random

import pytest
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
from relist.effects import Note, Publish
from relist.values import Doubt, Phase
from support.faults import FAULTS, Fault
from support.play import SETTINGS, WEIGHTS, Play, Setting, Violation

# Long scripts find, short ones are what a found one shrinks to.
SCRIPTS = st.binary(max_size=150) | st.binary(min_size=60, max_size=150)
CHOICES = st.integers(0, 255)
JOINED = {"repeat", "duplicate", "break"}  # the rules *disturb* and *wreck*


def play_script(setting: Setting, settled: bool, script: bytes) -> None:
    """One run: perhaps converged first, then the script, then convergence."""
    play = Play(setting)
    if settled:
        play.settle()
    for choice in script:
        play.act(choice)
    play.settle()


class SessionMachine(RuleBasedStateMachine):
    """Each rule is a family of actions; a choice picks one of those that are possible."""

    @initialize(setting=st.sampled_from(SETTINGS), settled=st.booleans())
    def begin(self, setting: Setting, settled: bool) -> None:
        """A setting, connected and listed or not yet."""
        self.play = Play(setting)
        if settled:
            self.play.settle()

    def _possible(self, family: str) -> bool:
        return hasattr(self, "play") and family in self.play.options()

    @precondition(lambda self: self._possible("answer"))
    @rule(choice=CHOICES)
    def answer(self, choice: int) -> None:
        """A request is answered, and the answer arrives."""
        self.play.act_in("answer", choice)

    @rule()
    def run(self) -> None:
        """All requests are answered and all answers arrive, for a while."""
        self.play.act_in("run", 0)

    @precondition(lambda self: self._possible("serve"))
    @rule(choice=CHOICES)
    def serve(self, choice: int) -> None:
        """A request is answered, the answer is held; late requests are answered too."""
        self.play.act_in("serve", choice)

    @precondition(lambda self: self._possible("deliver"))
    @rule(choice=CHOICES)
    def deliver(self, choice: int) -> None:
        """Something arrives, over HTTP in any order."""
        self.play.act_in("deliver", choice)

    @rule(choice=CHOICES)
    def change(self, choice: int) -> None:
        """A list changes, perhaps between two pages of a walk."""
        self.play.act_in("change", choice)

    @rule(choice=CHOICES)
    def notice(self, choice: int) -> None:
        """A list changes, and the client hears of it at once."""
        self.play.act_in("notice", choice)

    @rule(choice=CHOICES)
    def endless(self, choice: int) -> None:
        """A list loses its last page, or gets it back."""
        self.play.act_in("endless", choice)

    @precondition(lambda self: self._possible("again"))
    @rule(choice=CHOICES)
    def again(self, choice: int) -> None:
        """An answer arrives a second time."""
        self.play.act_in("again", choice)

    @rule(choice=CHOICES)
    def disturb(self, choice: int) -> None:
        """Notices for nothing, and the same frame twice."""
        self.play.act_in("repeat" if choice % 2 else "duplicate", choice // 2)

    @rule(choice=CHOICES)
    def fail(self, choice: int) -> None:
        """A request fails."""
        self.play.act_in("fail", choice)

    @rule(choice=CHOICES)
    def wreck(self, choice: int) -> None:
        """The connection, the session or the stream of notices ends."""
        self.play.act_in("break", choice)

    @rule(choice=CHOICES)
    def wish(self, choice: int) -> None:
        """Reads, refreshes, proofs, other credentials."""
        self.play.act_in("wish", choice)

    @rule(choice=CHOICES)
    def time(self, choice: int) -> None:
        """A little, or to the next deadline."""
        self.play.act_in("time", choice)

    def teardown(self) -> None:
        """``converges``"""
        if hasattr(self, "play") and not self.play.broken:
            note("\n".join(self.play.transcript[-40:]))
            self.play.settle()


TestSession = SessionMachine.TestCase


@given(setting=st.sampled_from(SETTINGS), settled=st.booleans(), script=SCRIPTS)
def test_any_script_keeps_every_promise(setting: Setting, settled: bool, script: bytes) -> None:
    play_script(setting, settled, script)


def test_the_rules_cover_the_families() -> None:
    """No family of actions is missing from the rules."""
    assert all(hasattr(SessionMachine, family) or family in JOINED for family in WEIGHTS)


def test_scripts_reach_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A play that never comes near the edges would keep every promise, too."""
    dice = Random(1)
    phases, doubts, told, rules = set[Phase](), set[Doubt](), Counter[str](), set[str]()

    def watching(edge: Edge) -> None:
        phases.add(edge.after.phase)
        if edge.after.doubt is not None:
            doubts.add(edge.after.doubt)
        for effect in edge.effects:
            told[type(effect).__name__] += 1
            if isinstance(effect, Note):
                rules.add(effect.rule)
            if isinstance(effect, Publish) and not effect.snapshot.clean:
                told["spoiled"] += 1

    monkeypatch.setattr(invariants, "ALWAYS", {"watch": watching})
    for _ in range(60):
        play_script(dice.choice(SETTINGS), dice.random() < 0.5, dice.randbytes(120))
    assert phases == set(Phase)
    assert doubts == set(Doubt)
    assert {"Publish", "AbandonWalk", "Withdraw", "NeedCredentials", "spoiled"} <= set(told)
    assert {"ATOM-13", "DISC-16", "CAP-16"} <= rules


# --- seeded faults --------------------------------------------------------------------------------

BY_FAULT = pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])


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


@BY_FAULT
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
    """The profile in force, with the same examples each time; nothing is remembered."""
    return settings(
        settings(), derandomize=True, database=None, report_multiple_bugs=False, print_blob=False
    )


def _by_bytes() -> None:
    strategies = {"setting": st.sampled_from(SETTINGS), "settled": st.booleans(), "script": SCRIPTS}
    _hunting()(given(**strategies)(play_script))()


def test_faults_name_promises_that_exist() -> None:
    promises = {*invariants.ALWAYS, *isolation.ISOLATED, "fresh-is-current", "converges"}
    assert {name for fault in FAULTS for name in fault.caught_by} <= promises
