"""The guards and actions of the listen chart: the channel that carries notices.

One chart for all three carriers: a pipe carries notices by itself, the legacy GET stream is opened
by the transport, a modern subscription is asked for and acknowledged.
"""

from attrs import evolve

from relist import inputs as i
from relist.effects import CancelListen, ListenEffect, Note, OpenListen
from relist.failures import AUTHORIZATION_STATUSES, METHOD_NOT_FOUND
from relist.freshness import reached
from relist.policy import Policy
from relist.rules.base import ListenStep
from relist.values import Carrier, Channel, Listen, ListenPhase

Answer = i.PushOpened | i.PushEnded
_NONE: frozenset[Channel] = frozenset()


def pipe_carries(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """Legacy notices on a pipe need no asking. Rule: NOTE-10."""
    return bool(heard.channels) and heard.carrier is Carrier.PIPE


def must_ask(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """Notices come only on a stream of their own. Rule: SUB-01, NOTE-13."""
    return bool(heard.channels) and heard.carrier is not Carrier.PIPE


def nothing_to_ask(_: Listen, heard: i.PushWanted, __: Policy) -> bool:
    """The server declared listChanged for nothing. Rule: CAP-06."""
    return not heard.channels


def current(listen: Listen, heard: Answer, _: Policy) -> bool:
    """About the stream that was asked for last, and may still stand.

    A subscription that was given up stays given up; the GET stream is the transport's to reopen.
    """
    gone = listen.phase is ListenPhase.RESTING and listen.carrier is Carrier.SUBSCRIPTION
    return heard.serial == listen.serial and not gone


def late(listen: Listen, heard: Answer, policy: Policy) -> bool:
    """About another stream. Rule: SUB-14, SUB-19."""
    return not current(listen, heard, policy)


def never_comes_back(listen: Listen, heard: i.PushEnded, policy: Policy) -> bool:
    """The server has no such method or stream, or does not allow it. Rule: SUB-31, NOTE-14."""
    failure = heard.failure
    return (
        current(listen, heard, policy)
        and failure is not None
        and (
            failure.code == METHOD_NOT_FOUND
            or failure.status == 405
            or failure.status in AUTHORIZATION_STATUSES
        )
    )


def may_come_back(listen: Listen, heard: i.PushEnded, policy: Policy) -> bool:
    """Result, cancellation, error and cut all end the stream for now. Rule: SUB-20 to 23."""
    return current(listen, heard, policy) and not never_comes_back(listen, heard, policy)


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
    """The backoff is not over."""
    return not due(listen, heard, policy)


# --- actions --------------------------------------------------------------------------------------


def rely_on_pipe(listen: Listen, heard: i.PushWanted, _: Policy, to: ListenPhase) -> ListenStep:
    """Everything declared is carried from now on."""
    return ListenStep(
        Listen(
            to,
            heard.carrier,
            heard.channels,
            heard.channels,
            listen.serial,
            None,
            None,
            0,
            heard.now_ms,
        )
    )


def _ask(listen: Listen, now_ms: int, policy: Policy, to: ListenPhase) -> ListenStep:
    serial = listen.serial + 1
    asked = evolve(
        listen,
        phase=to,
        granted=_NONE,
        serial=serial,
        limit_at_ms=now_ms + policy.ack_limit_ms,
        due_at_ms=None,
        opened_at_ms=None,
    )
    subscribes = listen.carrier is Carrier.SUBSCRIPTION
    return ListenStep(asked, (OpenListen(serial, listen.channels),) if subscribes else ())


def ask_first(listen: Listen, heard: i.PushWanted, policy: Policy, to: ListenPhase) -> ListenStep:
    """Ask for the channels on each new link, before anything is listed (D-14).

    Rule: SUB-24, SUB-27.
    """
    wanted = evolve(listen, carrier=heard.carrier, channels=heard.channels, failures=0)
    return _ask(wanted, heard.now_ms, policy, to)


def ask_again(listen: Listen, heard: i.TimePassed, policy: Policy, to: ListenPhase) -> ListenStep:
    """A new request with a new serial. Rule: SUB-23, SUB-25."""
    return _ask(listen, heard.now_ms, policy, to)


def admit(listen: Listen, heard: i.PushOpened, _: Policy, to: ListenPhase) -> ListenStep:
    """What was both asked for and granted is covered, without a limit from now on.

    Rule: SUB-05 to SUB-07, SUB-29, SUB-40.
    """
    extra = heard.channels - listen.channels
    notes: tuple[ListenEffect, ...] = ()
    if extra:
        names = tuple(sorted(channel.value for channel in extra))
        notes = (Note("SUB-40", "granted without being asked for", names),)
    opened = evolve(
        listen,
        phase=to,
        granted=listen.channels & heard.channels,
        limit_at_ms=None,
        due_at_ms=None,
        opened_at_ms=heard.now_ms,
    )
    return ListenStep(opened, notes)


def rest(
    listen: Listen, heard: i.PushEnded | i.TimePassed, policy: Policy, to: ListenPhase
) -> ListenStep:
    """No push for now; ask again later, also after an orderly end. Rule: SUB-26, SUB-28."""
    opened = listen.opened_at_ms
    healthy = opened is not None and heard.now_ms - opened >= policy.healthy_ms
    failures = 1 if healthy else listen.failures + 1
    asks = listen.carrier is Carrier.SUBSCRIPTION
    failure = heard.failure if isinstance(heard, i.PushEnded) else None
    due_at_ms = heard.now_ms + policy.backoff_ms(failures, "listen", listen.serial, failure)
    return ListenStep(
        evolve(
            listen,
            phase=to,
            granted=_NONE,
            limit_at_ms=None,
            due_at_ms=due_at_ms if asks else None,
            failures=failures,
            opened_at_ms=None,
        )
    )


def give_up(listen: Listen, heard: i.TimePassed, policy: Policy, to: ListenPhase) -> ListenStep:
    """Never acknowledged: cancel it and ask again later. Rule: SUB-30."""
    rested, _ = rest(listen, heard, policy, to)
    asks = listen.carrier is Carrier.SUBSCRIPTION
    return ListenStep(rested, (CancelListen(listen.serial),) if asks else ())


def go_without(listen: Listen, _: i.PushEnded, __: Policy, to: ListenPhase) -> ListenStep:
    """There is no push to be had on this link. Rule: SUB-31, NOTE-14."""
    return ListenStep(_quiet(listen, to))


def release(listen: Listen, _: i.PushReleased, __: Policy, to: ListenPhase) -> ListenStep:
    """The link is gone, and the channel with it."""
    return ListenStep(_quiet(listen, to))


def _quiet(listen: Listen, to: ListenPhase) -> Listen:
    return evolve(
        listen,
        phase=to,
        granted=_NONE,
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
