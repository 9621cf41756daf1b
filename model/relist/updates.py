"""Which resources somebody wants to hear of, and how far that stands. Rule: RES-03 to RES-07.

The caller's wishes are the only record that outlives a link (SUB-39). In the modern era one
subscription of its own carries all of them, so that a change of wishes never disturbs that of the
lists; in the legacy era each resource is subscribed to by a request. Nothing here touches a list
(RES-01), and no list touches this: a resource that is listed no more stays subscribed to (RES-19).
An update only tells which content is out of date.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attrs import evolve

from relist import inputs as i
from relist.effects import (
    CancelListen,
    CancelSubscribe,
    CancelUpdates,
    ContentChanged,
    ContentUncovered,
    ListenEffect,
    Note,
    OpenListen,
    OpenUpdates,
    RequestSubscribe,
    RequestUnsubscribe,
    UpdatesEffect,
)
from relist.errors import ImpossibleAct
from relist.failures import INVALID_PARAMS, lasts
from relist.freshness import earliest, reached
from relist.frozen import frozen
from relist.inputs import ListenInput, UpdatesInput
from relist.machine import step_listen
from relist.policy import Policy
from relist.resources import contains
from relist.tags import fault_of_tag
from relist.values import Carrier, Era, Failure, Link, LinkPhase, Listen, Topic, new_listen

NOTHING: frozenset[str] = frozenset()


@frozen
class Asked:
    """A legacy request that is on its way: to subscribe, or (``undo``) to end a subscription.

    ``failures`` counts how often in a row it has failed before.
    """

    uri: str
    serial: int
    undo: bool
    limit_at_ms: int
    failures: int


@frozen
class Resting:
    """A resource that is asked for again when due, after so many failures in a row."""

    uri: str
    due_at_ms: int
    failures: int


@frozen
class Updates:
    """What is wanted, and what stands on the link of this ``epoch`` (None: on none).

    ``held`` are the legacy subscriptions that were granted, ``refused`` those that will not be.
    """

    wanted: frozenset[str]
    epoch: int | None
    listen: Listen
    asked: tuple[Asked, ...]
    held: frozenset[str]
    refused: frozenset[str]
    resting: tuple[Resting, ...]
    serial: int


class UpdatesStep(NamedTuple):
    """What became of it, and what it asks for, in order."""

    state: Updates
    effects: tuple[UpdatesEffect, ...] = ()


NO_UPDATES = Updates(NOTHING, None, new_listen(), (), NOTHING, NOTHING, (), 0)
"""Nobody wants to hear of anything."""


def covered_uris(updates: Updates) -> frozenset[str]:
    """The resources whose updates would reach us now. Rule: SUB-05, SUB-08."""
    granted = (topic for topic in updates.listen.granted if isinstance(topic, str))
    return updates.held.union(granted)


def updates_deadline_ms(updates: Updates) -> int | None:
    """When this wants a TimePassed."""
    listen = updates.listen
    return earliest(
        listen.limit_at_ms,
        listen.due_at_ms,
        *(asked.limit_at_ms for asked in updates.asked),
        *(resting.due_at_ms for resting in updates.resting),
    )


# --- the link -------------------------------------------------------------------------------------


def follow(updates: Updates, link: Link, now_ms: int, policy: Policy) -> UpdatesStep:
    """Stand on this link: subscribe again on a new one, drop all with a lost one.

    Only where the server declared ``subscribe``. Rule: CAP-08 to CAP-10, RES-07, SUB-24, SUB-39.
    """
    epoch = link.epoch if link.phase is LinkPhase.LIVE and link.capabilities.subscribe else None
    if epoch == updates.epoch:
        return UpdatesStep(updates)
    stands = link.phase is LinkPhase.LIVE and link.epoch == updates.epoch
    dropped, lost = _drop(updates, now_ms, policy, stands=stands)
    state, asked = _ask(evolve(dropped, epoch=epoch), link, now_ms, policy)
    return UpdatesStep(state, (*lost, *asked))


def _drop(updates: Updates, now_ms: int, policy: Policy, *, stands: bool) -> UpdatesStep:
    """Nothing stands any more; on a link that does, what the server offered no more is ended."""
    none: frozenset[Topic] = NOTHING
    unwanted = i.PushWanted(none, Carrier.SUBSCRIPTION, now_ms)
    quiet, ended = _listen(updates, unwanted if stands else i.PushReleased(now_ms), policy)
    bare = evolve(
        quiet,
        asked=(),
        held=NOTHING,
        refused=NOTHING,
        resting=(),
    )
    return UpdatesStep(bare, (*ended, *_uncovered(updates.held)))


def _uncovered(uris: Iterable[str]) -> tuple[ContentUncovered, ...]:
    lost = frozenset(uris)
    return (ContentUncovered(lost),) if lost else ()


# --- hearing --------------------------------------------------------------------------------------


def hear(updates: Updates, heard: UpdatesInput, link: Link, policy: Policy) -> UpdatesStep:
    """What becomes of the subscriptions on hearing this. Pure and total.

    Raises ImpossibleAct for more wishes than ``policy.subscriptions_max``.
    """
    match heard:
        case i.UpdatesWanted():
            return _want(updates, heard, link, policy)
        case i.UpdatesOpened():
            opened = i.PushOpened(heard.serial, heard.uris, heard.now_ms)
            return _listen(updates, opened, policy)
        case i.UpdatesEnded():
            return _listen(updates, i.PushEnded(heard.serial, heard.failure, heard.now_ms), policy)
        case i.SubscribeAnswered():
            return _answered(updates, heard, link, policy)
        case i.UpdateHeard():
            return UpdatesStep(updates, tuple(_update(updates, heard, link)))
        case i.TimePassed():  # pragma: no branch: there is no other
            return _time(updates, heard, link, policy)


def _want(updates: Updates, heard: i.UpdatesWanted, link: Link, policy: Policy) -> UpdatesStep:
    if len(heard.uris) > policy.subscriptions_max:
        raise ImpossibleAct(
            f"UpdatesWanted.uris are {len(heard.uris)}, more than policy.subscriptions_max"
            f" ({policy.subscriptions_max})"
        )
    wanted = evolve(
        updates,
        wanted=heard.uris,
        refused=updates.refused & heard.uris,
        resting=tuple(resting for resting in updates.resting if resting.uri in heard.uris),
    )
    return _ask(wanted, link, heard.now_ms, policy)


def _time(updates: Updates, heard: i.TimePassed, link: Link, policy: Policy) -> UpdatesStep:
    state, effects = _listen(updates, heard, policy)
    for asked in updates.asked:
        if reached(asked.limit_at_ms, heard.now_ms):
            silence = Failure("no answer", timed_out=True)
            failed = i.SubscribeAnswered(asked.serial, silence, heard.now_ms)
            state, more = _answered(state, failed, link, policy)
            effects += (CancelSubscribe(asked.serial), *more)
    if any(reached(resting.due_at_ms, heard.now_ms) for resting in state.resting):
        state, more = _ask(state, link, heard.now_ms, policy)
        effects += more
    return UpdatesStep(state, effects)


def _update(updates: Updates, heard: i.UpdateHeard, link: Link) -> Iterator[UpdatesEffect]:
    """An update concerns one resource, which may lie below a subscribed one.

    Rule: RES-01, RES-05, RES-17, SUB-10, SUB-14 to SUB-16.
    """
    modern = link.era is Era.MODERN
    fault = fault_of_tag("update", heard.serial, updates.listen) if modern else None
    if fault is not None:
        yield Note(fault.rule, fault.text, () if heard.serial is None else (heard.serial,))
        if not fault.believed:
            return
    if not any(heard.uri == uri or contains(uri, heard.uri) for uri in updates.wanted):
        yield Note("RES-17", "update of a resource that nobody asked about")
        return
    yield ContentChanged(heard.uri)


# --- asking: modern -------------------------------------------------------------------------------


def _ask(updates: Updates, link: Link, now_ms: int, policy: Policy) -> UpdatesStep:
    """Ask for what is wanted and not asked for yet, and give up what is not wanted any more."""
    if updates.epoch is None:
        return UpdatesStep(updates)
    if link.era is Era.MODERN:
        topics: frozenset[Topic] = updates.wanted
        wanted = i.PushWanted(topics, Carrier.SUBSCRIPTION, now_ms)
        return _listen(updates, wanted, policy)
    return _request(updates, now_ms, policy)


def _listen(updates: Updates, heard: ListenInput, policy: Policy) -> UpdatesStep:
    """The listen chart, with a stream of its own. Rule: RES-04, SUB-08, SUB-12, SUB-34.

    What a stream carried that ended, or was taken over, may have been missed.
    """
    before = updates.listen
    listen, told = step_listen(before, heard, policy)
    state = updates if listen is before else evolve(updates, listen=listen)
    ended = before.granted if listen.stream != before.stream else before.granted - listen.granted
    lost = _uncovered(topic for topic in ended if isinstance(topic, str))
    return UpdatesStep(state, (*map(_of_updates, told), *lost))


def _of_updates(told: ListenEffect) -> UpdatesEffect:
    match told:
        case OpenListen():
            uris = frozenset(topic for topic in told.topics if isinstance(topic, str))
            return OpenUpdates(told.serial, uris)
        case CancelListen():
            return CancelUpdates(told.serial)
        case Note():  # pragma: no branch: there is no other
            return told


# --- asking: legacy -------------------------------------------------------------------------------


def _request(updates: Updates, now_ms: int, policy: Policy) -> UpdatesStep:
    """One request for each resource, one at a time for the same. Rule: RES-03, SUB-37.

    Each resource rests by itself, so that one which keeps failing delays no other.
    """
    busy = {asked.uri for asked in updates.asked}
    due = {one.uri: one.failures for one in updates.resting if reached(one.due_at_ms, now_ms)}
    waits = tuple(one for one in updates.resting if one.uri not in due)
    idle = updates.held | updates.refused | busy | {one.uri for one in waits}
    missing, surplus = updates.wanted - idle, updates.held - updates.wanted - busy
    if not (missing or surplus):
        return UpdatesStep(updates)
    serial, limit_at_ms = updates.serial, now_ms + policy.request_limit_ms
    asked, effects = list(updates.asked), list[UpdatesEffect]()
    for uri in sorted(missing | surplus):
        serial += 1
        undo = uri in surplus
        asked.append(Asked(uri, serial, undo, limit_at_ms, due.get(uri, 0)))
        effects.append((RequestUnsubscribe if undo else RequestSubscribe)(serial, uri))
    state = evolve(updates, asked=tuple(asked), resting=waits, serial=serial)
    return UpdatesStep(state, tuple(effects))


def _answered(
    updates: Updates, heard: i.SubscribeAnswered, link: Link, policy: Policy
) -> UpdatesStep:
    asked = next((asked for asked in updates.asked if asked.serial == heard.serial), None)
    if asked is None:
        late = Note("ATOM-13", "late for the resource subscriptions", (heard.serial,))
        return UpdatesStep(updates, (late,))
    state = evolve(updates, asked=tuple(one for one in updates.asked if one is not asked))
    if asked.undo:  # where that failed it is unknown whether it stands: treat it as gone
        state = evolve(state, held=state.held - {asked.uri})
    elif heard.failure is None:
        state = evolve(state, held=state.held | {asked.uri})
    else:
        state = _refused(state, asked, heard.failure, heard.now_ms, policy)
    return _ask(state, link, heard.now_ms, policy)


def _refused(
    updates: Updates, asked: Asked, failure: Failure, now_ms: int, policy: Policy
) -> Updates:
    """A passing failure is tried again after a backoff, any other not on this link.

    What nobody wants any more leaves nothing behind: the end of its rest would change nothing.
    """
    if asked.uri not in updates.wanted:
        return updates
    if lasts(failure) or failure.code == INVALID_PARAMS:  # no such resource
        return evolve(updates, refused=updates.refused | {asked.uri})
    failures = asked.failures + 1
    delay_ms = policy.backoff_ms(failures, "subscribe", asked.serial, failure)
    rests = Resting(asked.uri, now_ms + delay_ms, failures)
    return evolve(updates, resting=(*updates.resting, rests))
