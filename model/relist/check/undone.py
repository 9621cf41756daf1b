"""What a client had not done by a fence, or to the end, though the machine would have.

Nothing is called undone that the client did later on. Where the machine would have waited a while
after a failure, the client is given longer: the one use of the clock here, and it only silences.
"""

from attrs import frozen

from relist.check.history import Event, History
from relist.check.offered import Offered
from relist.check.replayed import LISTEN, Replayed
from relist.messages import NAMES
from relist.values import Era, Kind, LinkPhase, ListenPhase, Phase

_GRACE_MS = 3_000


@frozen
class Undone:
    """What was not done, of which kind (None: of the link), as seen in which event."""

    seq: int
    text: str
    kind: Kind | None


def by_fence(event: Event, history: History, replayed: Replayed, offered: Offered) -> Undone | None:
    """What the client had not done by this fence."""
    machine = replayed.machine
    if machine.link.phase is not LinkPhase.LIVE:
        return None
    for kind in Kind:
        if replayed.walks[kind].open or kind in replayed.lost:
            continue
        text = _not_again(kind, event, replayed, offered) or _not_at_all(
            kind, event, replayed, offered
        )
        if text is not None:
            return Undone(event.seq, f"by this fence {NAMES[kind].method} {text}", kind)
    return _unheard(event, history, replayed)


def _not_again(kind: Kind, event: Event, replayed: Replayed, offered: Offered) -> str | None:
    """The list was doubted for sure and needed, and it was given for good."""
    reason = replayed.reasons.get(kind)
    known = None if reason is None else offered.known(reason)
    if reason is None or known is None or replayed.asked_at[kind] > reason.seq:
        return None
    since = reason.seq if reason.proved >= 0 else known
    for told in offered.told:
        if told.kind is not kind or told.op == "believe" or not told.claims:
            continue
        silent = told.state != "fresh" and offered.lists_later(kind, event.seq)
        if told.asked.seq > since and told.labels is not None and not silent:
            return (
                f"had not been sent again, though {reason.told} and the list was needed after"
                f" it (#{told.asked.seq})"
            )
    return None


def _not_at_all(kind: Kind, event: Event, replayed: Replayed, offered: Offered) -> str | None:
    """The list was needed, and nothing forbade to ask for it."""
    machine, walks = replayed.machine, replayed.walks[kind]
    catalog, asked_at = machine.session.catalog(kind), replayed.asked_at[kind]
    failed = walks.refused > asked_at
    if not (failed or asked_at < 0) or offered.lists_later(kind, event.seq):
        return None
    if catalog.phase is not Phase.STALE or walks.wait_ms is None:
        return None
    if catalog.pacing.parked is not None:
        return None
    began = max(machine.live_seq, walks.refused)
    wait_ms = _GRACE_MS + 2 * walks.wait_ms
    needs = [
        one
        for one in offered.asks.values()
        if one.data.get("op") in ("need", "refresh") and one.data.get("kind") == kind.value
        if event.at_ms - one.at_ms >= wait_ms and (one.seq > began or not failed)
    ]
    if not needs:
        return None
    why = f"it had failed (#{walks.refused}) and " if failed else ""
    again = " again" if failed else " at all"
    return f"had not been sent{again}, though {why}the list was needed (#{needs[-1].seq})"


def _unheard(event: Event, history: History, replayed: Replayed) -> Undone | None:
    """The subscription that the client had is over, and it went on without."""
    machine = replayed.machine
    listen, ended = machine.session.listen, machine.unheard
    asks = listen.phase in (ListenPhase.ASKED, ListenPhase.RESTING)
    if ended is None or not asks or machine.link.era is not Era.MODERN or listen.failures > 2:
        return None
    if event.at_ms - ended.at_ms < _GRACE_MS:
        return None
    if any((one.message or {}).get("method") == LISTEN for one in history if one.seq > event.seq):
        return None
    text = (
        f"by this fence {LISTEN} had not been sent again, though the subscription had ended"
        f" (#{ended.seq})"
    )
    return Undone(event.seq, text, None)


def to_the_end(history: History, replayed: Replayed, offered: Offered) -> Undone | None:
    """What the client never did: to connect again, though it was needed."""
    gone_at = replayed.gone_at
    asks = [] if gone_at is None else [one for one in offered.asks.values() if one.seq > gone_at]
    if any(one.data.get("op") == "stop" for one in asks):
        return None
    needs = [one for one in asks if one.data.get("op") in ("need", "refresh", "call")]
    seen = [one for one in history if needs and one.seq > needs[0].seq]
    waited = [one for one in seen if one.kind in ("answer", "fence")]
    if not waited or waited[-1].at_ms - needs[0].at_ms < _GRACE_MS:
        return None
    text = (
        f"no connection was begun again after the last one had ended (#{gone_at}), though"
        f" somebody needed it (#{needs[0].seq})"
    )
    return Undone(waited[-1].seq, text, None)
