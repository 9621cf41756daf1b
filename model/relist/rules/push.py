"""The guards and actions of the listen chart: the channel that carries notices.

One chart for all three carriers: a pipe carries notices by itself, the legacy GET stream is opened
by the transport, a modern subscription is asked for and acknowledged.
"""

from attrs import evolve

from relist import inputs as i
from relist.effects import CancelListen, ListenEffect, Note, OpenListen
from relist.failures import lasts
from relist.freshness import reached
from relist.policy import Policy
from relist.rules.base import ListenStep
from relist.values import Carrier, Failure, Listen, ListenPhase, Topic

Answer = i.PushOpened | i.PushEnded
Overdue = i.PushEnded | i.TimePassed
_NONE: frozenset[Topic] = frozenset()


# --- guards: what is wanted -----------------------------------------------------------------------


def pipe_carries(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """Legacy notices on a pipe need no asking. Rule: NOTE-10."""
    return bool(heard.topics) and heard.carrier is Carrier.PIPE


def must_ask(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """Notices come only on a stream of their own. Rule: SUB-01, NOTE-13."""
    return bool(heard.topics) and heard.carrier is not Carrier.PIPE


def nothing_to_ask(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """Nothing is wanted: the server declared listChanged for nothing. Rule: CAP-06."""
    return not heard.topics


def asks_otherwise(listen: Listen, heard: i.PushWanted, _: Policy) -> bool:
    """A subscription is to be about something else. Rule: SUB-34."""
    return _subscribes(listen) and bool(heard.topics) and heard.topics != listen.topics


def asks_nothing(listen: Listen, heard: i.PushWanted, _: Policy) -> bool:
    """Nobody is interested any more."""
    return _subscribes(listen) and not heard.topics


def asks_the_same(listen: Listen, heard: i.PushWanted, _: Policy) -> bool:
    """Asked for already; what carries legacy notices is asked for once for each link."""
    return not _subscribes(listen) or heard.topics == listen.topics != _NONE


def _subscribes(listen: Listen) -> bool:
    return listen.carrier is Carrier.SUBSCRIPTION


# --- guards: answers and time ---------------------------------------------------------------------


def current(listen: Listen, heard: Answer, _: Policy) -> bool:
    """About the stream that stands, or else about the one that was asked for last.

    A subscription that was given up stays given up; the GET stream is the transport's to reopen.
    """
    if listen.phase is ListenPhase.OPEN:
        return heard.serial == listen.stream
    gone = listen.phase is ListenPhase.RESTING and _subscribes(listen)
    return heard.serial == listen.serial and not gone


def late(listen: Listen, heard: Answer, policy: Policy) -> bool:
    """About another stream. Rule: SUB-14, SUB-19."""
    return not (current(listen, heard, policy) or _ends_old(listen, heard))


def new_one_failed(listen: Listen, heard: i.PushEnded, _: Policy) -> bool:
    """What was to take over has ended before it began."""
    return heard.serial == listen.serial


def old_one_ended(listen: Listen, heard: i.PushEnded, _: Policy) -> bool:
    """The stream that stands has ended while another one is on its way."""
    return _ends_old(listen, heard)


def _ends_old(listen: Listen, heard: Answer) -> bool:
    renewing = listen.phase is ListenPhase.RENEWING and heard.serial == listen.stream
    return renewing and isinstance(heard, i.PushEnded)


def never_comes_back(listen: Listen, heard: i.PushEnded, policy: Policy) -> bool:
    """The server has no such method or stream, or does not allow it.

    Rule: FAIL-19, NOTE-14, SUB-31.
    """
    return current(listen, heard, policy) and _is_final(heard.failure)


def _is_final(failure: Failure | None) -> bool:
    return failure is not None and (lasts(failure) or failure.status == 405)


def may_come_back(listen: Listen, heard: i.PushEnded, policy: Policy) -> bool:
    """Result, cancellation, error and cut all end the stream for now. Rule: SUB-20 to 23."""
    return current(listen, heard, policy) and not _is_final(heard.failure)


def unanswered(listen: Listen, heard: i.TimePassed, _: Policy) -> bool:
    """The acknowledgement is overdue. Rule: SUB-30."""
    return reached(listen.limit_at_ms, heard.now_ms)


def may_be_answered(listen: Listen, heard: i.TimePassed, policy: Policy) -> bool:
    """The acknowledgement may still come in time."""
    return not unanswered(listen, heard, policy)


def due(listen: Listen, heard: i.TimePassed, _: Policy) -> bool:
    """The backoff is over."""
    return reached(listen.due_at_ms, heard.now_ms)


def not_due(listen: Listen, heard: i.TimePassed, policy: Policy) -> bool:
    """The backoff is not over, or nothing is to be asked."""
    return not due(listen, heard, policy)


# --- actions: asking ------------------------------------------------------------------------------


def rely_on_pipe(listen: Listen, heard: i.PushWanted, _: Policy, to: ListenPhase) -> ListenStep:
    """Everything declared is carried from now on."""
    carried = evolve(
        listen,
        phase=to,
        carrier=heard.carrier,
        topics=heard.topics,
        granted=heard.topics,
        stream=listen.serial,
        failures=0,
        opened_at_ms=heard.now_ms,
    )
    return ListenStep(carried)


def _ask(listen: Listen, now_ms: int, policy: Policy, to: ListenPhase) -> ListenStep:
    serial = listen.serial + 1
    asked = evolve(
        listen,
        phase=to,
        serial=serial,
        limit_at_ms=now_ms + policy.ack_limit_ms,
        due_at_ms=None,
    )
    return ListenStep(asked, (OpenListen(serial, listen.topics),) if _subscribes(listen) else ())


def ask_first(listen: Listen, heard: i.PushWanted, policy: Policy, to: ListenPhase) -> ListenStep:
    """Ask for the topics on each new link, before anything is listed (D-14).

    Rule: SUB-24, SUB-27.
    """
    wanted = evolve(listen, carrier=heard.carrier, topics=heard.topics, failures=0)
    return _ask(wanted, heard.now_ms, policy, to)


def ask_again(listen: Listen, heard: i.TimePassed, policy: Policy, to: ListenPhase) -> ListenStep:
    """A new request with a new serial. Rule: SUB-23, SUB-25."""
    return _ask(listen, heard.now_ms, policy, to)


def ask_beside(listen: Listen, heard: i.PushWanted, policy: Policy, to: ListenPhase) -> ListenStep:
    """Ask for something else; until that is acknowledged the old stream stands. Rule: SUB-34."""
    return _ask(evolve(listen, topics=heard.topics, failures=0), heard.now_ms, policy, to)


def ask_instead(listen: Listen, heard: i.PushWanted, policy: Policy, to: ListenPhase) -> ListenStep:
    """Not acknowledged yet, and already out of date: cancel it and ask anew.

    Lists may be waiting for the acknowledgement, so its limit stays. Rule: SUB-30, SUB-34.
    """
    asked, effects = ask_beside(listen, heard, policy, to)
    asked = evolve(asked, limit_at_ms=listen.limit_at_ms)
    return ListenStep(asked, (CancelListen(listen.serial), *effects))


def ask_later(listen: Listen, heard: i.PushWanted, _: Policy, __: ListenPhase) -> ListenStep:
    """What the next request will ask for; the backoff goes on. Rule: SUB-26."""
    return ListenStep(evolve(listen, topics=heard.topics))


# --- actions: streams that begin and end ----------------------------------------------------------


def admit(listen: Listen, heard: i.PushOpened, _: Policy, to: ListenPhase) -> ListenStep:
    """What was both asked for and granted is covered, without a limit from now on.

    Rule: SUB-05 to SUB-07, SUB-29, SUB-40.
    """
    notes: tuple[ListenEffect, ...] = ()
    if heard.topics - listen.topics:
        extra = len(heard.topics - listen.topics)
        notes = (Note("SUB-40", "granted without being asked for (topics)", (extra,)),)
    opened = evolve(
        listen,
        phase=to,
        granted=listen.topics & heard.topics,
        stream=listen.serial,
        limit_at_ms=None,
        due_at_ms=None,
        opened_at_ms=heard.now_ms,
    )
    return ListenStep(opened, notes)


def take_over(listen: Listen, heard: i.PushOpened, policy: Policy, to: ListenPhase) -> ListenStep:
    """The new stream stands, so the old one is not needed any more. Rule: SUB-34."""
    assert listen.stream is not None  # renewing means that a stream stands
    opened, notes = admit(listen, heard, policy, to)
    return ListenStep(opened, (CancelListen(listen.stream), *notes))


def keep_old(listen: Listen, heard: Overdue, policy: Policy, to: ListenPhase) -> ListenStep:
    """No replacement for now: the old stream stands, and another one is asked for later."""
    failure = heard.failure if isinstance(heard, i.PushEnded) else None
    failures = listen.failures + 1
    again_at_ms = heard.now_ms + policy.backoff_ms(failures, "listen", listen.serial, failure)
    kept = evolve(
        listen,
        phase=to,
        limit_at_ms=None,
        due_at_ms=None if _is_final(failure) else again_at_ms,
        failures=failures,
    )
    silent = isinstance(heard, i.TimePassed)
    return ListenStep(kept, (CancelListen(listen.serial),) if silent else ())


def lose_old(listen: Listen, _: i.PushEnded, __: Policy, to: ListenPhase) -> ListenStep:
    """No notices until the one that is on its way is acknowledged. Rule: SUB-28."""
    return ListenStep(evolve(listen, phase=to, granted=_NONE, stream=None, opened_at_ms=None))


def rest(listen: Listen, heard: Overdue, policy: Policy, to: ListenPhase) -> ListenStep:
    """No push for now; ask again later, also after an orderly end. Rule: SUB-26, SUB-28."""
    opened = listen.opened_at_ms
    healthy = opened is not None and heard.now_ms - opened >= policy.healthy_ms
    failures = 1 if healthy else listen.failures + 1
    failure = heard.failure if isinstance(heard, i.PushEnded) else None
    due_at_ms = heard.now_ms + policy.backoff_ms(failures, "listen", listen.serial, failure)
    rested = evolve(
        _quiet(listen, to), due_at_ms=due_at_ms if _subscribes(listen) else None, failures=failures
    )
    return ListenStep(rested)


def give_up(listen: Listen, heard: i.TimePassed, policy: Policy, to: ListenPhase) -> ListenStep:
    """Never acknowledged: cancel it and ask again later. Rule: SUB-30."""
    rested, _ = rest(listen, heard, policy, to)
    return ListenStep(rested, (CancelListen(listen.serial),) if _subscribes(listen) else ())


def go_without(listen: Listen, _: i.PushEnded, __: Policy, to: ListenPhase) -> ListenStep:
    """There is no push to be had on this link. Rule: SUB-31, NOTE-14."""
    return ListenStep(_quiet(listen, to))


def release(listen: Listen, _: i.PushReleased, __: Policy, to: ListenPhase) -> ListenStep:
    """The link is gone, and the channel with it."""
    return ListenStep(_quiet(listen, to))


def hang_up(listen: Listen, _: i.PushWanted, __: Policy, to: ListenPhase) -> ListenStep:
    """Cancel what stands or is asked for. Rule: SUB-17."""
    asked = listen.serial if listen.limit_at_ms is not None else None
    serials = [serial for serial in (listen.stream, asked) if serial is not None]
    return ListenStep(_quiet(listen, to), tuple(map(CancelListen, serials)))


def _quiet(listen: Listen, to: ListenPhase) -> Listen:
    return evolve(
        listen,
        phase=to,
        granted=_NONE,
        stream=None,
        limit_at_ms=None,
        due_at_ms=None,
        opened_at_ms=None,
    )


def nothing(listen: Listen, _: object, __: Policy, ___: ListenPhase) -> ListenStep:
    """The same state object, and no effect."""
    return ListenStep(listen)


def note_late(listen: Listen, heard: Answer, _: Policy, __: ListenPhase) -> ListenStep:
    """It belongs to another stream, or comes twice, and changes nothing. Rule: SUB-14, SUB-19."""
    note = Note("SUB-14", "late for the listen channel", (type(heard).__name__, heard.serial))
    return ListenStep(listen, (note,))
