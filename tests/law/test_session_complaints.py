"""The same for the link, the channel for notices, and a whole session."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from relist import inputs as i
from relist.check.edge import LinkEdge, ListenEdge
from relist.check.isolation import ISOLATED, SessionEdge, broken
from relist.check.joined import LINK_ALWAYS, LISTEN_ALWAYS
from relist.effects import Effect, OpenListen, OpenTransport, RequestDiscover, RequestPage
from relist.session import Session, new_session, receive
from relist.updates import Asked, Resting
from relist.values import (
    Carrier,
    Channel,
    Era,
    Failure,
    Kind,
    Link,
    LinkPhase,
    Listen,
    ListenPhase,
    Phase,
    Wire,
    new_link,
    new_listen,
)
from support.alphabet import FULL
from support.one import LEGACY, MODERN, policy

POLICY = policy()
LATER_MS = POLICY.retry_after_max_ms + 1
ALL = frozenset[Channel](Channel)
SOME = frozenset({Channel.TOOLS})


def link(phase: LinkPhase, **changes: Any) -> Link:
    return evolve(new_link(Wire.HTTP), phase=phase, epoch=1, serial=1, offered=MODERN, **changes)


def listen(phase: ListenPhase, **changes: Any) -> Listen:
    """A subscription to one list."""
    asked = evolve(new_listen(), carrier=Carrier.SUBSCRIPTION, topics=SOME, serial=1)
    return evolve(asked, phase=phase, **changes)


# --- the link -------------------------------------------------------------------------------------

LIVE = {"era": Era.MODERN, "version": MODERN, "limit_at_ms": 9}
ASKED = RequestDiscover(2, MODERN)

LINK_WRONG: tuple[tuple[str, str, Link, i.LinkInput, Link, Any], ...] = (
    (
        "one-transport",
        "epoch 1 -> 3 in opening",
        link(LinkPhase.WAITING),
        i.TimePassed(0),
        evolve(link(LinkPhase.OPENING), epoch=3),
        (OpenTransport(3),),
    ),
    (
        "one-question",
        "asks again though an answer is awaited",
        link(LinkPhase.LIVE, **LIVE),
        i.DiscoveryWanted(0),
        evolve(link(LinkPhase.LIVE, **LIVE), serial=2),
        (ASKED,),
    ),
    (
        "one-question",
        f"asks {[ASKED]} [] in handshaking",
        link(LinkPhase.OPENING),
        i.TransportOpened(1, 0),
        evolve(link(LinkPhase.HANDSHAKING), serial=2, offered=LEGACY),
        (ASKED,),
    ),
    (
        "time-is-set",
        "waits beyond its limit",
        link(LinkPhase.OPENING, limit_at_ms=9),
        i.TimePassed(9),
        link(LinkPhase.OPENING, limit_at_ms=9),
        (),
    ),
    (
        "time-is-set",
        "waiting, due at None",
        link(LinkPhase.OPENING, limit_at_ms=9),
        i.TimePassed(9),
        link(LinkPhase.WAITING),
        (),
    ),
    (
        "time-is-set",
        f"waits {LATER_MS} ms",
        link(LinkPhase.OPENING, limit_at_ms=9),
        i.TimePassed(9),
        link(LinkPhase.WAITING, due_at_ms=9 + LATER_MS),
        (),
    ),
)


@pytest.mark.parametrize(
    ("check", "complaint", "before", "heard", "after", "effects"),
    [pytest.param(*wrong, id=f"{wrong[0]}: {wrong[1]}") for wrong in LINK_WRONG],
)
def test_a_wrong_step_of_the_link_is_named(
    check: str, complaint: str, before: Link, heard: i.LinkInput, after: Link, effects: Any
) -> None:
    assert LINK_ALWAYS[check](LinkEdge(before, heard, after, effects, POLICY)) == complaint


# --- the channel for notices ----------------------------------------------------------------------

LISTEN_WRONG: tuple[tuple[str, str, Listen, i.ListenInput, Listen], ...] = (
    (
        "granted-is-open",
        "open, stream None, granted 0",
        listen(ListenPhase.ASKED, limit_at_ms=9),
        i.PushOpened(1, SOME, 0),
        listen(ListenPhase.OPEN),
    ),
    (
        "one-listen",
        "serial 1 -> 3 in asked",
        listen(ListenPhase.RESTING, due_at_ms=9),
        i.TimePassed(9),
        evolve(listen(ListenPhase.ASKED, limit_at_ms=99), serial=3),
    ),
    (
        "one-listen",
        f"asks [] instead of {[OpenListen(2, SOME)]}",
        listen(ListenPhase.RESTING, due_at_ms=9),
        i.TimePassed(9),
        evolve(listen(ListenPhase.ASKED, limit_at_ms=99), serial=2),
    ),
    (
        "push-time-is-set",
        "resting, due at None",
        listen(ListenPhase.OPEN, stream=1),
        i.PushEnded(1, None, 9),
        listen(ListenPhase.RESTING),
    ),
    (
        "push-time-is-set",
        f"rests {LATER_MS} ms",
        listen(ListenPhase.OPEN, stream=1),
        i.PushEnded(1, None, 9),
        listen(ListenPhase.RESTING, due_at_ms=9 + LATER_MS),
    ),
)


@pytest.mark.parametrize(
    ("check", "complaint", "before", "heard", "after"),
    [pytest.param(*wrong, id=f"{wrong[0]}: {wrong[1]}") for wrong in LISTEN_WRONG],
)
def test_a_wrong_step_of_push_is_named(
    check: str, complaint: str, before: Listen, heard: i.ListenInput, after: Listen
) -> None:
    assert LISTEN_ALWAYS[check](ListenEdge(before, heard, after, (), POLICY)) == complaint


# --- the session ----------------------------------------------------------------------------------

CONNECTED: tuple[i.SessionInput, ...] = (
    i.ConnectWanted(0),
    i.TransportOpened(1, 0),
    i.DiscoverAnswered(1, (MODERN,), FULL, 0),
    i.PushOpened(1, ALL, 0),
)
NOTICE = i.NoticeHeard(Channel.TOOLS, 1, 0)
CREDENTIALS = i.CredentialsChanged("B", 0)


def heard(*said: i.SessionInput) -> SessionEdge:
    """The last step of a session that hears this from the beginning."""
    session = after = new_session(Wire.HTTP, "A")
    effects: tuple[Effect, ...] = ()
    for one in said:
        session = after
        after, effects = receive(session, one, POLICY)
    return SessionEdge(session, said[-1], after, effects, POLICY)


REFUSED_VERSION = i.PageFailed(Kind.TOOLS, 1, Failure("x", code=-32022), 0)


def connected(*said: i.SessionInput) -> SessionEdge:
    return heard(*CONNECTED, *said)


@pytest.mark.parametrize(
    "edge",
    [
        *(heard(*CONNECTED[:count]) for count in range(1, 5)),
        connected(NOTICE),
        connected(evolve(NOTICE, serial=9)),
        connected(evolve(NOTICE, serial=None)),
        connected(i.PushEnded(1, None, 0)),
        connected(i.ReadWanted(Kind.TOOLS, 0)),
        connected(REFUSED_VERSION),
        connected(CREDENTIALS),
        connected(i.TransportLost(1, 0)),
    ],
    ids=lambda edge: type(edge.heard).__name__,
)
def test_of_right_steps_nobody_complains(edge: SessionEdge) -> None:
    assert list(broken(edge)) == []


Change = Callable[[Session], Session]


def became(edge: SessionEdge, change: Change) -> SessionEdge:
    return edge._replace(after=change(edge.after))


def link_of(**changes: Any) -> Change:
    return lambda session: evolve(session, link=evolve(session.link, **changes))


def listen_of(**changes: Any) -> Change:
    return lambda session: evolve(session, listen=evolve(session.listen, **changes))


def updates_of(**changes: Any) -> Change:
    return lambda session: evolve(session, updates=evolve(session.updates, **changes))


ASKED_FOR_A = Asked("a", 1, undo=False, limit_at_ms=9, failures=0)


def watching() -> SessionEdge:
    """Connected to a server that tells of single resources."""
    offer = evolve(FULL, subscribe=True)
    return heard(*CONNECTED[:2], i.DiscoverAnswered(1, (MODERN,), offer, 0), CONNECTED[3])


def tools_of(**changes: Any) -> Change:
    def change(session: Session) -> Session:
        tools, *rest = session.catalogs
        return evolve(session, catalogs=(evolve(tools, **changes), *rest))

    return change


def standing_of(**changes: Any) -> Change:
    def change(session: Session) -> Session:
        return tools_of(standing=evolve(session.catalogs[0].standing, **changes))(session)

    return change


REQUEST = RequestPage(Kind.TOOLS, 1, None)
WAITING = {"phase": LinkPhase.WAITING}

SESSION_WRONG: tuple[tuple[str, str, SessionEdge], ...] = (
    ("kinds-are-isolated", "the link heard of it", became(connected(NOTICE), link_of(serial=9))),
    (
        "kinds-are-isolated",
        "the link heard of it",
        connected(REFUSED_VERSION)._replace(heard=evolve(REFUSED_VERSION, serial=9)),
    ),
    (
        "kinds-are-isolated",
        "a channel for notices heard of it",
        became(connected(NOTICE), listen_of(failures=9)),
    ),
    (
        "kinds-are-isolated",
        "tools changed as well",
        became(
            connected(evolve(NOTICE, channel=Channel.PROMPTS)), tools_of(phase=Phase.REFRESHING)
        ),
    ),
    (
        "kinds-are-isolated",
        "effects on ['tools']",
        connected(evolve(NOTICE, channel=Channel.PROMPTS))._replace(effects=(REQUEST,)),
    ),
    (
        "listing-is-allowed",
        "lists tools while the link is waiting",
        became(connected(), link_of(**WAITING)),
    ),
    (
        "listing-is-allowed",
        "lists tools, which was not declared",
        became(connected(), link_of(capabilities=evolve(FULL, kinds=frozenset()))),
    ),
    (
        "listing-is-allowed",
        "lists tools before push was acknowledged or given up",
        became(connected(), listen_of(phase=ListenPhase.ASKED)),
    ),
    (
        "phases-agree",
        "tools is disconnected, the link live",
        became(connected(), tools_of(phase=Phase.DISCONNECTED)),
    ),
    (
        "phases-agree",
        "tools covered: False, push says otherwise",
        became(connected(), standing_of(covered=False)),
    ),
    ("phases-agree", "tools is of epoch 9", became(connected(), standing_of(epoch=9))),
    (
        "phases-agree",
        "tools waits, though listing is allowed",
        became(connected(), tools_of(phase=Phase.INITIALIZING)),
    ),
    (
        "one-partition",
        "partitions ['A', 'C']",
        became(connected(), standing_of(partition="C")),
    ),
    (
        "one-partition",
        "the new partition was not taken over",
        connected(CREDENTIALS)._replace(heard=evolve(CREDENTIALS, partition="C")),
    ),
    (
        "push-is-current",
        "granted more than was asked for",
        became(heard(*CONNECTED[:3]), listen_of(granted=frozenset({"file:///a"}), stream=1)),
    ),
    (
        "push-is-current",
        "granted while open",
        became(connected(), listen_of(stream=None)),
    ),
    (
        "push-is-current",
        "another stream changed the session",
        connected()._replace(heard=i.PushEnded(9, None, 0)),
    ),
    (
        "push-is-current",
        "a foreign notice changed the session",
        connected(NOTICE)._replace(heard=evolve(NOTICE, serial=9)),
    ),
    ("serials-rise", "epoch 1 -> 0", became(connected(), link_of(epoch=0))),
    (
        "serials-rise",
        "serials [9] after 1",
        connected()._replace(effects=(RequestDiscover(9, MODERN),)),
    ),
    ("serials-rise", "serial 1 -> 0, used []", became(connected(), link_of(serial=0))),
    (
        "updates-follow",
        "updates stand on epoch 9, the link is of 1",
        became(connected(), updates_of(epoch=9)),
    ),
    (
        "updates-follow",
        "1 resources are left of a lost link",
        became(connected(), updates_of(held=frozenset({"a"}))),
    ),
    (
        "updates-follow",
        "asks for ['a', 'a'], rests []",
        became(watching(), updates_of(asked=(ASKED_FOR_A, ASKED_FOR_A))),
    ),
    (
        "updates-follow",
        "asks for [], rests ['a']",
        became(watching(), updates_of(resting=(Resting("a", 9, 1),))),
    ),
    (
        "updates-follow",
        "['a'] are wanted, and nobody asks for them",
        became(watching(), updates_of(wanted=frozenset({"a"}))),
    ),
)


@pytest.mark.parametrize(
    ("check", "complaint", "edge"),
    [pytest.param(*wrong, id=f"{wrong[0]}: {wrong[1]}") for wrong in SESSION_WRONG],
)
def test_a_wrong_step_of_a_session_is_named(check: str, complaint: str, edge: SessionEdge) -> None:
    assert ISOLATED[check](edge) == complaint
    assert (check, complaint) in broken(edge)
