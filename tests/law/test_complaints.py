"""What each check says: right steps with one thing made wrong, and the complaint word by word.

The explorer finds a fault by the check that bites first; here every complaint is met on purpose.
"""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from relist import inputs as i
from relist.check.edge import Edge
from relist.check.invariants import ALWAYS, broken
from relist.effects import AbandonWalk, Publish, RequestPage, Withdraw
from relist.inputs import CatalogInput
from relist.machine import step
from relist.values import Doubt, Kind, Parked, Phase, Scope, Snapshot
from support.one import TRANSIENT, UNAUTHORIZED, One, fresh, items, policy, walking

TOOLS = Kind.TOOLS


def stepped(one: One, heard: CatalogInput) -> Edge:
    """The step that hearing this takes."""
    after, effects = step(one.catalog, heard, one.policy)
    return Edge(one.catalog, heard, after, effects, one.policy)


def page(one: One, *texts: str, more: str | None = None) -> i.PageArrived:
    serial = one.catalog.serial
    return i.PageArrived(TOOLS, serial, items(*texts), more, None, Scope.PUBLIC, one.now_ms)


# --- right steps ----------------------------------------------------------------------------------


def gathered() -> Edge:
    """A page of several."""
    one = walking()
    return stepped(one, page(one, "a", more="next"))


def published() -> Edge:
    one = walking()
    return stepped(one, page(one, "a"))


def republished() -> Edge:
    """The list that is held already."""
    one = fresh()
    one.refresh()
    return stepped(one, page(one, "a", "b"))


def published_and_begun() -> Edge:
    """A list that somebody did not want to wait for."""
    one = walking()
    one.refresh()
    return stepped(one, page(one, "a"))


def set_aside() -> Edge:
    one = walking()
    one.notice()
    return stepped(one, page(one, "a"))


def begun() -> Edge:
    one = fresh()
    return stepped(one, i.RefreshWanted(TOOLS, one.now_ms))


def doubted() -> Edge:
    one = fresh()
    return stepped(one, i.ListChangedHeard(one.now_ms))


def uncovered() -> Edge:
    one = fresh()
    return stepped(one, i.CoverageLost(one.now_ms))


def late() -> Edge:
    one = walking()
    return stepped(one, evolve(page(one, "a"), serial=0))


def moved() -> Edge:
    """Other credentials, while what was listed is private."""
    one = fresh(scope=Scope.PRIVATE)
    return stepped(one, i.CredentialsChanged("B", one.now_ms))


def vanished() -> Edge:
    """The server has no such kind any more."""
    one = fresh()
    return stepped(one, i.CapabilitiesChanged(False, False, one.now_ms))


def unauthorized() -> Edge:
    one = walking()
    return stepped(one, i.PageFailed(TOOLS, one.catalog.serial, UNAUTHORIZED, one.now_ms))


def parked() -> Edge:
    """Time passes in vain."""
    one = fresh()
    one.refresh()
    one.fail(UNAUTHORIZED)
    return stepped(one, i.TimePassed(one.now_ms))


def proved_of_another() -> Edge:
    """A call that was planned on an older list was rejected."""
    one = fresh()
    return stepped(one, i.StalenessProved(TOOLS, 0, one.now_ms))


def waiting() -> Edge:
    """After a failure, time passes before the next try is due."""
    one = fresh()
    one.refresh()
    one.fail(TRANSIENT)
    return stepped(one, i.TimePassed(one.now_ms))


RIGHT = (
    *(gathered, published, republished, published_and_begun, set_aside, begun, doubted, uncovered),
    *(late, moved, vanished, unauthorized, parked, proved_of_another, waiting),
)


@pytest.mark.parametrize("edge", RIGHT)
def test_of_right_steps_nobody_complains(edge: Callable[[], Edge]) -> None:
    assert list(broken(edge())) == []


# --- made wrong -----------------------------------------------------------------------------------


def after(edge: Edge, **changes: Any) -> Edge:
    return edge._replace(after=evolve(edge.after, **changes))


def walk(edge: Edge, **changes: Any) -> Edge:
    assert edge.after.walk is not None
    return after(edge, walk=evolve(edge.after.walk, **changes))


def pacing(edge: Edge, **changes: Any) -> Edge:
    return after(edge, pacing=evolve(edge.after.pacing, **changes))


def listed(edge: Edge, **changes: Any) -> Edge:
    """Another list than the one that is held now is said to be published."""
    first, *rest = edge.effects
    assert isinstance(first, Publish)
    other = evolve(first, snapshot=evolve(first.snapshot, **changes))
    return edge._replace(effects=(other, *rest))


def held(edge: Edge, **changes: Any) -> Edge:
    """The same of the list that is held."""
    assert edge.after.snapshot is not None
    return after(listed(edge, **changes), snapshot=evolve(edge.after.snapshot, **changes))


def candidate(edge: Edge) -> Snapshot:
    assert edge.after.candidate is not None
    return edge.after.candidate


def begun_from(phase: Phase, heard: CatalogInput, **changes: Any) -> Edge:
    """A walk that begins where and when it should not."""
    edge = begun()
    return edge._replace(before=evolve(edge.before, phase=phase, **changes), heard=heard)


def failed(edge: Edge) -> Any:
    return evolve(edge.before.pacing, failures=1, due_at_ms=edge.heard.now_ms + 1)


FRESH, AT_MS = Phase.FRESH, begun().heard.now_ms
REQUEST = RequestPage(TOOLS, 1, None)

WRONG: tuple[tuple[str, str, Edge], ...] = (
    ("single-flight", "refreshing without a walk", after(published(), phase=Phase.REFRESHING)),
    ("single-flight", "fresh with a walk", after(gathered(), phase=FRESH)),
    (
        "single-flight",
        "abandons (9,) while 1 is outstanding",
        stepped(walking(), i.RefreshWanted(TOOLS, 0))._replace(effects=(AbandonWalk(TOOLS, 9),)),
    ),
    ("single-flight", "2 requests in one step", gathered()._replace(effects=(REQUEST, REQUEST))),
    (
        "single-flight",
        "requests 1 after 1, the walk waits for 2",
        begun()._replace(effects=(REQUEST,)),
    ),
    (
        "walk-from-the-start",
        "cursor 'next' from nowhere",
        gathered()._replace(heard=i.TimePassed(0)),
    ),
    (
        "walk-from-the-start",
        "requests cursor 'next', the page named 'other'",
        gathered()._replace(heard=page(walking(), "a", more="other")),
    ),
    ("walk-from-the-start", "the page was not put aside as it came", walk(gathered(), pages=())),
    (
        "spoiled-stays-spoiled",
        "an open walk changed what it began as",
        walk(gathered(), covered=False),
    ),
    (
        "complete-or-nothing",
        "another list is held than was published",
        listed(published(), generation=9),
    ),
    ("complete-or-nothing", "the published list is not the walk", held(published(), items=())),
    (
        "complete-or-nothing",
        "held back something else than a spoiled walk",
        after(gathered(), candidate=candidate(set_aside())),
    ),
    (
        "complete-or-nothing",
        "the list held back is not the walk",
        after(set_aside(), candidate=evolve(candidate(set_aside()), items=())),
    ),
    ("fresh-is-undoubted", "FRESH and noticed", after(published(), doubt=Doubt.NOTICED)),
    ("fresh-is-undoubted", "FRESH without a clean list", after(published(), snapshot=None)),
    (
        "fresh-is-undoubted",
        "stale became FRESH without a list of its own",
        after(waiting(), phase=FRESH, doubt=None),
    ),
    (
        "fresh-is-undoubted",
        "a clean list was published, and is noticed",
        after(published_and_begun(), doubt=Doubt.NOTICED),
    ),
    (
        "doubt-sticks",
        "announced () instead of (<Doubt.NOTICED: 'noticed'>,)",
        doubted()._replace(effects=()),
    ),
    ("no-late-overwrite", "a late answer had an effect", late()._replace(effects=(REQUEST,))),
    (
        "generation-rises",
        "an unchanged list lost its identity",
        held(republished(), items=items("a", "b")),
    ),
    (
        "keep-last-good",
        "withdrawn, with a list held after or none before",
        gathered()._replace(effects=(Withdraw(TOOLS),)),
    ),
    (
        "keep-last-good",
        "withdrawn, though supported and not private to somebody else",
        after(doubted(), snapshot=None)._replace(effects=(Withdraw(TOOLS),)),
    ),
    (
        "gated-by-capability",
        "unsupported, with a walk or a list",
        after(doubted(), phase=Phase.UNSUPPORTED),
    ),
    (
        "gated-by-capability",
        "requests in initializing",
        begun_from(Phase.INITIALIZING, i.TimePassed(AT_MS)),
    ),
    (
        "private-stays-private",
        "a walk or a candidate outlived its credentials",
        after(moved(), candidate=evolve(candidate(set_aside()), partition="B")),
    ),
    ("private-stays-private", "published as private", listed(published(), scope=Scope.PRIVATE)),
    (
        "private-stays-private",
        "published for another partition",
        listed(published(), partition="B"),
    ),
    ("bounded-walk", "items or bytes were miscounted", walk(gathered(), count=9)),
    (
        "bounded-walk",
        "an open walk of 1 pages, 1 items, 67108865 bytes",
        walk(gathered(), size_bytes=policy().bytes_max + 1),
    ),
    (
        "bounded-walk",
        "the request has another limit than policy says",
        walk(gathered(), request_limit_at_ms=9),
    ),
    ("bounded-walk", "the limit of an open walk moved", walk(gathered(), walk_limit_at_ms=9)),
    (
        "bounded-traffic",
        "a parked catalog was un-parked",
        pacing(parked(), parked=None),
    ),
    (
        "bounded-traffic",
        "a walk begins on ListChangedHeard",
        begun_from(FRESH, i.ListChangedHeard(AT_MS)),
    ),
    (
        "bounded-traffic",
        "a call broke the failure backoff",
        begun_from(
            Phase.STALE,
            i.VerificationWanted(TOOLS, AT_MS),
            doubt=Doubt.FAILED,
            pacing=failed(begun()),
        ),
    ),
    (
        "bounded-traffic",
        "a walk begins on a page, though nobody asked",
        begun_from(FRESH, page(fresh(), "a")),
    ),
    (
        "bounded-traffic",
        "a parked catalog begins a walk that nobody insisted on",
        pacing(
            begun_from(
                Phase.STALE,
                i.TimePassed(AT_MS),
                pacing=evolve(parked().before.pacing, due_at_ms=AT_MS),
            ),
            parked=Parked.AUTHORIZATION,
        ),
    ),
    ("answer-counts", "parked, and due", pacing(unauthorized(), due_at_ms=AT_MS)),
    (
        "link-begins-anew",
        "(None, None, None, 2) outlived the link or the support",
        pacing(moved(), spoiled_in_row=2),
    ),
    ("link-begins-anew", "no list, and doubted", after(moved(), doubt=Doubt.NOTICED)),
    ("link-begins-anew", "unsupported, and still paced", pacing(vanished(), failures=1)),
    ("bounded-lag", "stale, and no walk will ever begin", pacing(doubted(), due_at_ms=None)),
    ("bounded-lag", "waits 30001 ms", pacing(doubted(), due_at_ms=AT_MS + 30_001)),
    ("bounded-lag", "waits 30001 ms", pacing(uncovered(), due_at_ms=AT_MS + 30_001)),
)


@pytest.mark.parametrize(
    ("check", "complaint", "edge"),
    [pytest.param(*wrong, id=f"{wrong[0]}: {wrong[1]}") for wrong in WRONG],
)
def test_a_wrong_step_is_named(check: str, complaint: str, edge: Edge) -> None:
    assert ALWAYS[check](edge) == complaint
    assert (check, complaint) in broken(edge)
