"""Everything that can happen in small worlds of drift; every promise is shown to bite."""

from collections.abc import Callable

import pytest
from attrs import evolve

from relist.check.drift import DRIFT, LedgerEdge, Story, edge
from relist.drift import inputs as i
from relist.drift import receive as receiving
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import WORDS, Ledger, PublishSurface
from relist.drift.values import (
    CapabilityRef,
    ChangeClass,
    FollowPolicy,
    Newcomers,
    Presence,
    Profile,
    Seen,
    ServerSelection,
)
from relist.policy import Risk
from support.drift import AMBIGUOUS, AWAY, MOVED, World, exactly, explore, inventory, ref

A, B = ref("a"), ref("b")
FAILURES = (
    i.ObservationFailed("home", A.subject, "cut", 0),
    inventory({}, clean=False),
    inventory({}, partition="somebody else's"),
)
FOLLOWING = FollowPolicy(
    {Risk.READ_ONLY: frozenset({ChangeClass.TEXT})}, frozenset({Risk.READ_ONLY})
)
JOINING = ServerSelection("home", newcomers=Newcomers.JOIN, trust_annotations=True)


def offers(*offered: dict[str, str]) -> tuple[LedgerInput, ...]:
    return tuple(inventory(one) for one in offered)


ONE = offers({"a": "1"}, {"a": "2"}, {"a": AMBIGUOUS}, {})
RENAMED = inventory({"b": "1"}).definitions["b"].id

WORLDS = [
    World("one item", (exactly("agent", A),), (*ONE, *FAILURES)),
    World(
        "one item, followed",
        (exactly("agent", A, follow=FOLLOWING),),
        (*ONE, inventory({"a": "1"}, MOVED)),
    ),
    World(
        "identity",
        (exactly("agent", A),),
        (*ONE[:2], ONE[3], inventory({"a": "1"}, MOVED), inventory({"a": "2"}, MOVED)),
    ),
    World(
        "two servers",
        (exactly("agent", A, ref("a", "away")),),
        (*offers({"a": "1"}, {}), inventory({"a": "1"}, AWAY), inventory({"a": "2"}, AWAY)),
    ),
    World(
        "a whole server",
        (Profile("agent", (JOINING,), FOLLOWING),),
        offers({"a": "1"}, {"a": "1", "b": "1"}, {"b": "2"}, {}),
    ),
    World(
        "a rename",
        (exactly("agent", A),),
        offers({"a": "1"}, {"b": "1"}, {"a": "1", "b": "1"}, {}),
        (i.Rebound("agent", A, B, RENAMED, "person", "", 0),),
    ),
]
TWO = World(
    "two consumers",
    (exactly("one", A), exactly("two", A)),
    offers({"a": "1"}, {"a": "2"}, {}),
)
LARGER = [
    World("three definitions", (exactly("agent", A),), (*ONE, *offers({"a": "3"}), *FAILURES)),
    World(
        "two consumers, two items",
        (exactly("one", A), exactly("two", A, B)),
        offers({"a": "1", "b": "1"}, {"a": "2", "b": "1"}, {"b": "1"}),
    ),
]
SCENES = {
    "one item": 754,
    "one item, followed": 407,
    "identity": 370,
    "two consumers": 3436,
    "two servers": 231,
    "a whole server": 464,
    "a rename": 101,
    "three definitions": 7206,
    "two consumers, two items": 10306,
}
"""Pinned: a world that shrinks looks at less."""


def _explored(world: World) -> frozenset[str]:
    found = explore(world)
    assert found.complaint is None, "\n".join(map(str, found.way))
    assert found.scenes == SCENES[world.name]
    return found.met


def test_nothing_goes_wrong_and_everything_happens() -> None:
    met: set[str] = set()
    for world in WORLDS:
        met |= _explored(world)
    assert met == set(WORDS) - {"profile set"}  # that is how a world begins


@pytest.mark.thorough
def test_nor_between_two_consumers() -> None:
    _explored(TWO)


@pytest.mark.nightly
@pytest.mark.parametrize("world", LARGER, ids=lambda world: world.name)
def test_nor_in_larger_worlds(world: World) -> None:
    _explored(world)


# --- each promise bites ---------------------------------------------------------------------------

Step = Callable[[Ledger, LedgerInput, Story], LedgerEdge]
Seed = Callable[[pytest.MonkeyPatch], None]
RUN = receiving._Run


def altered(alter: Callable[[LedgerEdge], LedgerEdge]) -> Step:
    """Steps that do something else than the law says."""
    return lambda ledger, heard, story: alter(edge(ledger, heard, story))


def lapse_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What was approved comes back after it was gone, as the one who waits for that wants."""
    patch.setattr(RUN, "_miss", _away)


def _away(run: receiving._Run, news: dict[str, Seen], about: CapabilityRef, held: Seen) -> None:
    news[about.key] = Seen(held.definition, Presence.GONE, 0)
    run._record("gone", "observer", "", ref=about, before=held.definition)
    run._touched[about] = None


def disturbed_believed(patch: pytest.MonkeyPatch) -> None:
    """A walk that was disturbed proves what is missing."""
    inventory = RUN.inventory
    patch.setattr(RUN, "inventory", lambda run, heard: inventory(run, evolve(heard, clean=True)))


def everybody_joins(patch: pytest.MonkeyPatch) -> None:
    """Whatever is new is let in, wherever one is selected."""
    patch.setattr(receiving, "joins", lambda *_: True)


def every_change_followed(patch: pytest.MonkeyPatch) -> None:
    """The name is the same, so it will do."""
    patch.setattr(receiving, "follows", lambda *_: True)


def numbers_repeat(patch: pytest.MonkeyPatch) -> None:
    """Entries take the place of entries."""
    record = RUN._record

    def recorded(run: receiving._Run, *about: object, **more: object) -> None:
        record(run, *about, **more)  # type: ignore[arg-type]
        run._change(entries=1)

    patch.setattr(RUN, "_record", recorded)


def decided_first(patch: pytest.MonkeyPatch) -> None:
    """Decisions are taken while the inventory is still read."""
    see = RUN._see

    def seen(run: receiving._Run, news: dict[str, Seen], *about: object) -> None:
        see(run, news, *about)  # type: ignore[arg-type]
        for key, found in news.items():
            place = ("home", A.subject)
            run._change(seen={**run._now.seen, place: {**run._now.seen.get(place, {}), key: found}})
            run._decide(ref(key))

    patch.setattr(RUN, "_see", seen)


def always_something_new(patch: pytest.MonkeyPatch) -> None:
    """The same definition is a change, too."""
    patch.setattr(receiving, "_is_away", lambda _: True)


def stale_surface(patch: pytest.MonkeyPatch) -> None:
    """What is gone stays on the surface."""
    patch.setattr(RUN, "_touch_server", lambda *_: None)


FAULTS: list[tuple[Seed, str, str]] = [
    (lapse_forgotten, "one item", "no-unreviewed-exposure"),
    (disturbed_believed, "one item", "absence-needs-proof"),
    (everybody_joins, "one item", "no-name-inheritance"),
    (every_change_followed, "one item", "no-name-inheritance"),
    (numbers_repeat, "one item", "history-is-append-only"),
    (decided_first, "a whole server", "history-is-append-only"),
    (always_something_new, "one item", "quiet-when-equal"),
    (stale_surface, "identity", "no-unreviewed-exposure"),
]


@pytest.mark.parametrize(("seed", "name", "promise"), FAULTS)
def test_a_seeded_fault_is_found(
    seed: Seed, name: str, promise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = next(world for world in WORLDS if world.name == name)
    seed(monkeypatch)
    complaint = explore(world).complaint
    assert complaint is not None
    assert complaint.startswith(promise)


def wish_forgotten(made: LedgerEdge) -> LedgerEdge:
    """An observation drops the profile."""
    if not isinstance(made.heard, i.Observation):
        return made
    return made._replace(after=evolve(made.after, profiles={}))


def published_in_halves(made: LedgerEdge) -> LedgerEdge:
    """A surface comes in two steps."""
    halves = tuple(one for one in made.effects if isinstance(one, PublishSurface))
    return made._replace(effects=(*made.effects, *halves))


ALTERED: list[tuple[Callable[[LedgerEdge], LedgerEdge], str]] = [
    (wish_forgotten, "intent-survives"),
    (published_in_halves, "manifest-is-atomic"),
]


@pytest.mark.parametrize(("alter", "promise"), ALTERED)
def test_an_altered_step_is_found(alter: Callable[[LedgerEdge], LedgerEdge], promise: str) -> None:
    complaint = explore(WORLDS[0], altered(alter)).complaint
    assert complaint is not None
    assert complaint.startswith(promise)


def test_every_promise_is_shown_to_bite() -> None:
    assert {promise for _, _, promise in FAULTS} | {promise for _, promise in ALTERED} == set(DRIFT)
