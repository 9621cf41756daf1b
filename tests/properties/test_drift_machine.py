"""Drift at random: two servers, two consumers, several subjects, profiles that change, failures.

Every promise of ``relist.check.drift`` is held to after each step; in the end, what is on a surface
is what people or policies let through. The world is too large to explore, so it is walked.
"""

from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from relist.check.drift import Story, broken, edge
from relist.drift import inputs as i
from relist.drift import ledger as standings
from relist.drift import receive as receiving
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Granted, Ledger
from relist.drift.review import reviews
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    ChangeClass,
    Chosen,
    ExactSelection,
    FollowPolicy,
    Newcomers,
    Profile,
    Rule,
    ServerSelection,
    Subject,
    Why,
)
from relist.errors import ImpossibleAct
from relist.policy import Risk
from support.drift import AMBIGUOUS, AWAY, HOME, MOVED, decisions, inventory

CONSUMERS, KEYS = ("reader", "writer"), ("a", "b")
SUBJECTS = (Subject.TOOL, Subject.TOOL, Subject.TOOL, Subject.RESOURCE)
SERVERS = (HOME, HOME, HOME, HOME, MOVED, AWAY)
NAMES = ("home", "home", "home", "away")
FOLLOW = st.sampled_from(
    [
        FollowPolicy(),
        FollowPolicy({Risk.READ_ONLY: frozenset({ChangeClass.TEXT})}),
        FollowPolicy({}, frozenset({Risk.READ_ONLY, Risk.DESTRUCTIVE})),
    ]
)
REFS = st.builds(
    CapabilityRef,
    st.sampled_from(NAMES),
    st.sampled_from(SUBJECTS),
    st.sampled_from(KEYS),
)
CHOSEN = st.builds(Chosen, st.sampled_from(Rule), st.sampled_from(Risk))
EXACT = st.builds(ExactSelection, st.dictionaries(REFS, CHOSEN, max_size=4))
WHOLE = st.builds(
    ServerSelection,
    st.sampled_from(NAMES),
    st.sampled_from(Rule),
    st.sampled_from(Newcomers),
    st.booleans(),
)
PROFILES = st.builds(
    Profile, st.sampled_from(CONSUMERS), st.tuples(EXACT) | st.tuples(WHOLE), FOLLOW
)
INVENTORIES = st.builds(
    inventory,
    st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["1", "1", "2", "2", "3", AMBIGUOUS])),
    st.sampled_from(SERVERS),
    clean=st.sampled_from([True, True, True, False]),
    partition=st.sampled_from(["me", "me", "me", "you"]),
    subject=st.sampled_from(SUBJECTS),
)
FAILURES = st.builds(
    i.ObservationFailed,
    st.sampled_from(NAMES),
    st.sampled_from(SUBJECTS),
    st.sampled_from(["cut", "refused"]),
    st.just(0),
)
SETTINGS = st.builds(i.ProfileSet, PROFILES, st.just("p"), st.just(""), st.just(0))
WHATS = [*["observe"] * 5, *["decide"] * 4, "rebind", "fail", "wish"]
REBINDS = st.tuples(st.sampled_from(CONSUMERS), REFS, REFS)


def rebound(
    ledger: Ledger, consumer: str, old: CapabilityRef, new: CapabilityRef
) -> LedgerInput | None:
    """A person binds what is there; whether that can be is the ledger's to say."""
    seen = ledger.version(new)
    if seen is None or seen.definition is None:
        return None
    return i.Rebound(consumer, old, new, seen.definition.id, "p", "", 0)


def walk(data: st.DataObject) -> None:
    """Up to forty steps, each held to every promise."""
    ledger, story = Ledger(), Story()
    for at_ms in range(data.draw(st.integers(5, 40))):
        heard = _next(data, ledger)
        if heard is None:
            continue
        heard = evolve(heard, at_ms=at_ms)
        note(f"{at_ms}: {type(heard).__name__}")
        with suppress(ImpossibleAct):
            made = edge(ledger, heard, story)
            for name, complaint in broken(made):
                raise AssertionError(f"{name}: {complaint}")
            ledger, story = made.after, made.story
    check_reviews(ledger)


def _next(data: st.DataObject, ledger: Ledger) -> LedgerInput | None:
    if not ledger.profiles:
        return data.draw(SETTINGS)
    what = data.draw(st.sampled_from(WHATS))
    if what == "rebind":
        return rebound(ledger, *data.draw(REBINDS))
    if what == "decide" and (possible := list(decisions(ledger))):
        return data.draw(st.sampled_from(possible))
    if what == "wish":
        return data.draw(SETTINGS)
    if what == "fail":
        return data.draw(FAILURES)
    return data.draw(INVENTORIES)


def check_reviews(ledger: Ledger) -> None:
    """Whatever is wished, not denied, and not on the surface, is rejected or open for review."""
    for review in reviews(ledger):
        shown = ledger.publications[review.consumer].manifest.items
        assert review.ref not in shown
        assert review.why is not Why.REJECTED
        assert review.ref not in review.candidates


@given(st.data())
def test_every_promise_holds(data: st.DataObject) -> None:
    walk(data)


def lapse_forgotten(now: CapabilityId, granted: Granted) -> CapabilityId | Why:
    """What was approved once is exposed again, however long it was gone."""
    return now if now in granted.approved else Why.UNREVIEWED


FAULTS: list[tuple[ModuleType, str, Callable[..., Any]]] = [
    (receiving, "joins", lambda *_: True),
    (receiving, "follows", lambda *_: True),
    (receiving, "resumes", lambda *_: True),
    (standings, "_judged", lapse_forgotten),
]


@pytest.mark.parametrize(("module", "name", "fault"), FAULTS)
def test_a_seeded_fault_is_found(
    module: ModuleType, name: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, fault)
    hunt = settings(max_examples=20 * settings().max_examples, phases=[Phase.generate])
    found = hunt(given(st.data())(walk))  # ends with the first one; the shortest is no matter
    with pytest.raises(AssertionError):
        found()
