"""What must hold on every edge of a session: kinds apart, push believed only where it was granted.

As in ``invariants``, a check returns None or a short text. What holds of each of the four catalogs
by itself is checked there; here stands what only the session can break.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from relist import inputs as i
from relist.effects import (
    AbandonWalk,
    DoubtList,
    Effect,
    OpenListen,
    Publish,
    RequestDiscover,
    RequestInitialize,
    RequestPage,
    Withdraw,
)
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import Session, covered
from relist.values import CHANNEL_OF, KINDS, Era, LinkPhase, ListenPhase, Phase


class SessionEdge(NamedTuple):
    """What a session was, what it heard, what it became and asked for."""

    before: Session
    heard: SessionInput
    after: Session
    effects: tuple[Effect, ...]
    policy: Policy


SessionCheck = Callable[[SessionEdge], str | None]

_OF_A_KIND = (RequestPage, AbandonWalk, Publish, Withdraw, DoubtList)


def broken(edge: SessionEdge) -> Iterator[tuple[str, str]]:
    """The name and the complaint of every check in ISOLATED that this edge breaks."""
    for name, check in ISOLATED.items():
        complaint = check(edge)
        if complaint is not None:
            yield name, complaint


def kinds_are_isolated(edge: SessionEdge) -> str | None:
    """What concerns one kind leaves the others the same objects.

    A notice concerns the kinds of its channel; an answer, a wish or a proof one kind. The link
    hears of neither. Rule: ATOM-21, LIFE-17, NOTE-04, NOTE-05, STATE-05.
    """
    heard = edge.heard
    if isinstance(heard, i.NoticeHeard):
        concerned = {kind for kind in KINDS if CHANNEL_OF[kind] is heard.channel}
    elif isinstance(heard, i.WishInput | i.StalenessProved | i.PageArrived | i.PageFailed):
        concerned = {heard.kind}
    else:
        return None
    asks_again = any(isinstance(told, RequestDiscover) for told in edge.effects)
    needs = isinstance(heard, i.WishInput) or _is_awaited(edge.before, heard)
    if edge.after.link is not edge.before.link and not (asks_again and needs):
        return "the link heard of it"
    if edge.after.listen is not edge.before.listen or edge.after.updates is not edge.before.updates:
        return "a channel for notices heard of it"
    for kind in set(KINDS) - concerned:
        if edge.after.catalog(kind) is not edge.before.catalog(kind):
            return f"{kind.value} changed as well"
    strays = {told.kind for told in edge.effects if isinstance(told, _OF_A_KIND)} - concerned
    return f"effects on {sorted(kind.value for kind in strays)}" if strays else None


def _is_awaited(session: Session, heard: SessionInput) -> bool:
    """Whether this is the failure of a request that is waited for. Rule: ATOM-13."""
    if not isinstance(heard, i.PageFailed):
        return False
    walk = session.catalog(heard.kind).walk
    return walk is not None and walk.serial == heard.serial


def listing_is_allowed(edge: SessionEdge) -> str | None:
    """Lists are asked for on a live link, of declared kinds, once push was settled.

    Rule: LIFE-02, LIFE-03, CAP-01, SUB-27.
    """
    link, listen = edge.after.link, edge.after.listen
    for told in edge.effects:
        if not isinstance(told, RequestPage):
            continue
        if link.phase is not LinkPhase.LIVE:
            return f"lists {told.kind.value} while the link is {link.phase.value}"
        if told.kind not in link.capabilities.kinds:
            return f"lists {told.kind.value}, which was not declared"
        first = edge.before.catalog(told.kind).phase is Phase.INITIALIZING
        if first and listen.phase is ListenPhase.ASKED:
            return f"lists {told.kind.value} before push was acknowledged or given up"
    return None


def phases_agree(edge: SessionEdge) -> str | None:
    """Catalogs know of the link's epoch, era and coverage exactly what is so. Rule: SUB-05."""
    session = edge.after
    linked = session.link.phase in (LinkPhase.PROBING, LinkPhase.HANDSHAKING, LinkPhase.LIVE)
    for kind in KINDS:
        catalog = session.catalog(kind)
        if linked is (catalog.phase is Phase.DISCONNECTED):
            return f"{kind.value} is {catalog.phase.value}, the link {session.link.phase.value}"
        if catalog.standing.covered is not covered(session.listen, kind):
            return f"{kind.value} covered: {catalog.standing.covered}, push says otherwise"
        if linked and catalog.standing.epoch != session.link.epoch:
            return f"{kind.value} is of epoch {catalog.standing.epoch}"
        waits = session.link.phase is LinkPhase.LIVE and session.listen.phase is not (
            ListenPhase.ASKED
        )
        if waits and catalog.phase is Phase.INITIALIZING:
            return f"{kind.value} waits, though listing is allowed"
    return None


def one_partition(edge: SessionEdge) -> str | None:
    """All catalogs act for one partition, the last that was named. Rule: AUTH-03, AUTH-04."""
    partitions = {catalog.standing.partition for catalog in edge.after.catalogs}
    if len(partitions) > 1:
        return f"partitions {sorted(partitions)}"
    if isinstance(edge.heard, i.CredentialsChanged) and partitions != {edge.heard.partition}:
        return "the new partition was not taken over"
    return None


def push_is_current(edge: SessionEdge) -> str | None:
    """Only the stream asked for last opens or ends push; more than asked for is never granted.

    Rule: SUB-06, SUB-14, SUB-19.
    """
    before, after, heard = edge.before.listen, edge.after.listen, edge.heard
    if not after.granted <= after.topics | before.granted:
        return "granted more than was asked for"
    if after.granted and after.stream is None:
        return f"granted while {after.phase.value}"
    ours = (before.serial, before.stream)
    another = isinstance(heard, i.PushOpened | i.PushEnded) and heard.serial not in ours
    if another and edge.after is not edge.before:
        return "another stream changed the session"
    if isinstance(heard, i.NoticeHeard) and edge.before.link.era is Era.MODERN:
        foreign = heard.serial not in (None, *ours)
        if foreign and edge.after is not edge.before:
            return "a foreign notice changed the session"
    return None


def serials_rise(edge: SessionEdge) -> str | None:
    """Epochs and serials only rise, and each request takes a new one.

    Rule: LIFE-14, LIFE-15, D-49.
    """
    before, after = edge.before, edge.after
    if after.link.epoch < before.link.epoch:
        return f"epoch {before.link.epoch} -> {after.link.epoch}"
    link = [t.serial for t in edge.effects if isinstance(t, RequestDiscover | RequestInitialize)]
    listen = [told.serial for told in edge.effects if isinstance(told, OpenListen)]
    for used, was, now in (
        (link, before.link.serial, after.link.serial),
        (listen, before.listen.serial, after.listen.serial),
    ):
        if used and used != [was + 1]:
            return f"serials {used} after {was}"
        if now < was or (used and used[-1] != now):
            return f"serial {was} -> {now}, used {used}"
    return None


def updates_follow(edge: SessionEdge) -> str | None:
    """Resources are watched on a live link that offers it, each once, and none is forgotten.

    Rule: CAP-09, RES-07, SUB-39.
    """
    updates, link = edge.after.updates, edge.after.link
    offered = link.phase is LinkPhase.LIVE and link.capabilities.subscribe
    if updates.epoch != (link.epoch if offered else None):
        return f"updates stand on epoch {updates.epoch}, the link is of {link.epoch}"
    asked = [one.uri for one in updates.asked]
    resting = [one.uri for one in updates.resting]
    stands = {*asked, *resting, *updates.held, *updates.refused, *updates.listen.topics}
    if updates.epoch is None:
        left = len(updates.asked) + len(resting) + len(updates.held | updates.refused)
        return f"{left} resources are left of a lost link" if left else None
    if len(set(asked)) < len(asked) or not {*resting} <= updates.wanted:
        return f"asks for {sorted(asked)}, rests {sorted(resting)}"
    forgotten = updates.wanted - stands
    return f"{sorted(forgotten)} are wanted, and nobody asks for them" if forgotten else None


ISOLATED: Mapping[str, SessionCheck] = {
    "kinds-are-isolated": kinds_are_isolated,
    "listing-is-allowed": listing_is_allowed,
    "phases-agree": phases_agree,
    "one-partition": one_partition,
    "push-is-current": push_is_current,
    "serials-rise": serials_rise,
    "updates-follow": updates_follow,
}
