"""The pure session against a model server: storms, changes between pages, reconnects, lateness.

Two drivers over one play (``support.play``). Rules read well and say what happened; bytes, one a
step, find and shrink faster. Both check every promise after every step and end with a quiet server,
which everything must converge on.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

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
from relist.effects import Note
from relist.inputs import ReadWanted
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


def family(act: Callable[..., None]) -> Any:
    """A rule by the name of a family, while an action of it is possible."""
    name = act.__name__

    def possible(machine: Any) -> bool:
        return hasattr(machine, "play") and bool(machine.play.possible(name))

    return precondition(possible)(rule(choice=CHOICES)(act))


class SessionMachine(RuleBasedStateMachine):
    """Each rule is a family of actions; a choice picks one of those that are possible."""

    @initialize(setting=st.sampled_from(SETTINGS), settled=st.booleans())
    def begin(self, setting: Setting, settled: bool) -> None:
        """A setting, connected and listed or not yet."""
        self.play = Play(setting)
        if settled:
            self.play.settle()

    @family
    def answer(self, choice: int) -> None:
        """A request is answered, and the answer arrives."""
        self.play.act_in("answer", choice)

    @family
    def run(self, choice: int) -> None:
        """All requests are answered, all answers arrive, links come back, for a while."""
        self.play.act_in("run", choice)

    @family
    def hold(self, choice: int) -> None:
        """A request is answered, the answer is held; late requests are answered too."""
        self.play.act_in("hold", choice)

    @family
    def arrive(self, choice: int) -> None:
        """Something arrives, over HTTP out of order."""
        self.play.act_in("arrive", choice)

    @family
    def again(self, choice: int) -> None:
        """An answer arrives a second time."""
        self.play.act_in("again", choice)

    @family
    def fail(self, choice: int) -> None:
        """A page, a stream, a probe, a handshake or the opening of the transport fails."""
        self.play.act_in("fail", choice)

    @family
    def change(self, choice: int) -> None:
        """A list changes."""
        self.play.act_in("change", choice)

    @family
    def change_between_pages(self, choice: int) -> None:
        """A list changes while some of its pages are read and some are not."""
        self.play.act_in("change_between_pages", choice)

    @family
    def change_all(self, choice: int) -> None:
        """All four kinds change at once, in content or in scope."""
        self.play.act_in("change_all", choice)

    @family
    def turn(self, choice: int) -> None:
        """The same list in another order."""
        self.play.act_in("turn", choice)

    @family
    def endless(self, choice: int) -> None:
        """A list loses its last page, or gets it back."""
        self.play.act_in("endless", choice)

    @family
    def notice(self, choice: int) -> None:
        """A list changes, and the client hears of it at once."""
        self.play.act_in("notice", choice)

    @family
    def storm(self, choice: int) -> None:
        """Notice after notice; or one with each list request from now on."""
        self.play.act_in("storm", choice)

    @family
    def duplicate(self, choice: int) -> None:
        """The same frame twice, or a notice of nothing new."""
        self.play.act_in("duplicate", choice)

    @family
    def foreign_notice(self, choice: int) -> None:
        """A notice for another client, for what is over, without a tag, or never granted."""
        self.play.act_in("foreign_notice", choice)

    @family
    def lose(self, choice: int) -> None:
        """The connection, the session or the stream of notices ends, and may come back."""
        self.play.act_in("lose", choice)

    @family
    def read(self, choice: int) -> None:
        """Somebody needs a list, or begins a new task."""
        self.play.act_in("read", choice)

    @family
    def adopt(self, choice: int) -> None:
        """The host gives a published list to its model."""
        self.play.act_in("adopt", choice)

    @family
    def subscribe(self, choice: int) -> None:
        """Somebody wants to hear of a single resource, or does not any more."""
        self.play.act_in("subscribe", choice)

    @family
    def update(self, choice: int) -> None:
        """News of a single resource, for this client or for another."""
        self.play.act_in("update", choice)

    @family
    def offer(self, choice: int) -> None:
        """The server has a kind no more, or has it again, and tells nobody."""
        self.play.act_in("offer", choice)

    @family
    def verify(self, choice: int) -> None:
        """A call waits for a list to be verified."""
        self.play.act_in("verify", choice)

    @family
    def refresh(self, choice: int) -> None:
        """Somebody asks for a new list."""
        self.play.act_in("refresh", choice)

    @family
    def prove(self, choice: int) -> None:
        """A rejected call proves a list stale, this one or an earlier one."""
        self.play.act_in("prove", choice)

    @family
    def credentials(self, choice: int) -> None:
        """New credentials, of the same partition or of another."""
        self.play.act_in("credentials", choice)

    @family
    def expire(self, choice: int) -> None:
        """A lifetime ends, and in that millisecond somebody needs the list."""
        self.play.act_in("expire", choice)

    @family
    def wait(self, choice: int) -> None:
        """Time passes, a little or to the next deadline."""
        self.play.act_in("wait", choice)

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
    assert set(FAMILIES) <= set(vars(SessionMachine))


def test_scripts_reach_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A play that never comes near the edges would keep every promise, too."""
    dice = Random(1)
    met, notes, told = set[object](), set[str](), Counter[str]()

    def watching(edge: Edge) -> None:
        before, after = edge.before, edge.after
        met.update((after.phase, after.doubt))
        told.update(type(effect).__name__ for effect in edge.effects)
        if isinstance(edge.heard, ReadWanted) and before.phase is Phase.FRESH and edge.begins:
            told["expired"] += 1
        if after.walk is not None and after.walk.pages and after.walk.spoiled:
            told["changed between pages"] += 1
        if edge.published is not None and not edge.published.snapshot.clean:
            told["spoiled"] += 1

    def watching_all(edge: SessionEdge) -> None:
        met.update((edge.after.link.phase, edge.after.listen.phase))
        notes.update(effect.rule for effect in edge.effects if isinstance(effect, Note))
        told["four walks at once"] += all(catalog.walk for catalog in edge.after.catalogs)

    monkeypatch.setattr(invariants, "ALWAYS", {"watch": watching})
    monkeypatch.setattr(isolation, "ISOLATED", {"watch": watching_all})
    for _ in range(80):
        play_script(dice.choice(SETTINGS), dice.random() < 0.5, dice.randbytes(120))
    assert {*Phase, *Doubt, *LinkPhase, *ListenPhase} - met == {LinkPhase.REFUSED}
    assert {"Publish", "AbandonWalk", "Withdraw", "NeedCredentials", "spoiled"} <= set(told)
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
    """The profile in force, with the same examples each time; nothing is remembered or shrunk."""
    return settings(
        settings(),
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
