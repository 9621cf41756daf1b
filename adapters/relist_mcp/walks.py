"""What happened to one kind in one step of the core. See ``fold.py``."""

from typing import Any

import attrs

from relist import effects as e
from relist import inputs as i
from relist.failures import FailureClass, classify_page
from relist.inputs import PageArrived, PageFailed
from relist.values import Catalog, Doubt, Kind, LinkPhase, Parked, Phase, Walk, Wish
from relist_mcp import events as ev
from relist_mcp.events import Cause, Event, Outcome
from relist_mcp.loop import Fed

_WISH = {Wish.READ: Cause.READ, Wish.VERIFY: Cause.VERIFY, Wish.REFRESH: Cause.REFRESH}
_DOUBT = {
    Doubt.NOTICED: Cause.NOTICED,
    Doubt.UNCOVERED: Cause.UNCOVERED,
    Doubt.SUSPECTED: Cause.SUSPECTED,
    Doubt.UNVOUCHED: Cause.UNVOUCHED,
    Doubt.FAILED: Cause.FAILED,
    Doubt.DISCONNECTED: Cause.RELINKED,
}
_FAILED = {
    FailureClass.TRANSIENT: Outcome.FAILED,
    FailureClass.AUTHORIZATION: Outcome.UNAUTHORIZED,
    FailureClass.UNMENDABLE: Outcome.REFUSED,
    FailureClass.DEAD_CURSOR: Outcome.DEAD_CURSOR,
    FailureClass.UNKNOWN_METHOD: Outcome.UNKNOWN,
}


@attrs.frozen
class SeenKind:
    """Of one kind: the open walk's beginning, and the notices that no list has answered yet.

    Of an ended walk nothing is kept, so that idle kinds share one value.
    """

    cause: Cause = Cause.FIRST
    began_at_ms: int = 0
    asked_at_ms: int = 0
    noticed_at_ms: int | None = None
    notices: int = 0

    def noticed(self, at_ms: int) -> "SeenKind":
        """The same after one more notice."""
        first_ms = at_ms if self.noticed_at_ms is None else self.noticed_at_ms
        return SeenKind(self.cause, self.began_at_ms, self.asked_at_ms, first_ms, self.notices + 1)

    def answered(self) -> "SeenKind":
        """The same once no notice waits for an answer."""
        return attrs.evolve(self, noticed_at_ms=None, notices=0)

    def ended(self) -> "SeenKind":
        """What is kept once the walk has ended."""
        if not self.notices:
            return NOTHING_SEEN
        return SeenKind(noticed_at_ms=self.noticed_at_ms, notices=self.notices)


NOTHING_SEEN = SeenKind()


def happened(kind: Kind, known: SeenKind, fed: Fed) -> tuple[SeenKind, list[Event]]:
    """What is carried on of this kind, and what happened to it in this step, in order."""
    if fed.before is fed.after or fed.before.catalog(kind) is fed.after.catalog(kind):
        return known, []
    look = _Look(kind, known, fed)
    look.tell()
    return look.known, look.told


class _Look:
    """A look at one kind in one step: ``known`` is carried on, ``told`` is what happened."""

    def __init__(self, kind: Kind, known: SeenKind, fed: Fed) -> None:
        self.known = known
        self.told: list[Event] = []
        self._heard = fed.heard
        self._link = fed.after.link
        self._before = fed.before.catalog(kind)
        self._after = fed.after.catalog(kind)
        self._effects = tuple(
            effect
            for effect in fed.effects
            if isinstance(effect, e.Publish | e.Withdraw | e.DoubtList) and effect.kind is kind
        )
        self._overlong = any(
            isinstance(effect, e.Note) and effect.rule == "DISC-16" for effect in fed.effects
        )
        self._at: dict[str, Any] = {
            "at_ms": fed.heard.now_ms,
            "epoch": fed.after.link.epoch,
            "kind": kind,
        }

    def tell(self) -> None:
        """Say what happened, in order."""
        before, after = self._before, self._after
        walk = before.walk
        ended = walk is not None and (after.walk is None or after.walk.first != walk.first)
        self._page(walk)
        self._published_and_doubted()
        if walk is not None and ended:
            self._ended(walk)
            self.known = self.known.ended()
        self._parked(before.pacing.parked, after.pacing.parked)
        if after.walk is not None and (walk is None or ended):
            self._began(after.walk)

    def _answer(self) -> i.PageAnswer | None:
        """The answer to the walk, if one was heard: any other would not have changed the kind."""
        return self._heard if isinstance(self._heard, PageArrived | PageFailed) else None

    def _page(self, walk: Walk | None) -> None:
        answer = None if walk is None else self._answer()
        if walk is None or not isinstance(answer, PageArrived) or self._overlong:
            return
        self.told.append(
            ev.PageListed(
                **self._at,
                walk=walk.first,
                number=len(walk.pages) + 1,
                entries=len(answer.items),
                more=answer.next_cursor is not None,
                took_ms=answer.now_ms - self.known.asked_at_ms,
            )
        )
        if answer.next_cursor is not None:
            self.known = attrs.evolve(self.known, asked_at_ms=answer.now_ms)

    def _published_and_doubted(self) -> None:
        for effect in self._effects:
            match effect:
                case e.Publish():
                    self._published(effect)
                case e.Withdraw():
                    self.told.append(ev.Withdrawn(**self._at))
                    self.known = self.known.answered()
                case e.DoubtList():
                    self.told.append(ev.Doubted(**self._at, doubt=effect.doubt))

    def _published(self, effect: e.Publish) -> None:
        walk, notices = self._before.walk, self.known.notices
        noticed_at_ms, lag_ms = self.known.noticed_at_ms, None
        if effect.snapshot.clean:  # all notices there were came before its walk
            if noticed_at_ms is not None:
                lag_ms = self._heard.now_ms - noticed_at_ms
            self.known = self.known.answered()
        self.told.append(
            ev.Published(
                **self._at,
                snapshot=effect.snapshot,
                replaced=self._before.snapshot,
                changed=effect.changed,
                covered=walk is not None and walk.covered,
                notices=notices,
                lag_ms=lag_ms,
            )
        )

    def _ended(self, walk: Walk) -> None:
        answer, after = self._answer(), self._after
        page = answer if isinstance(answer, PageArrived) else None
        outcome, reason = self._outcome(walk, answer)
        self.told.append(
            ev.WalkEnded(
                **self._at,
                walk=walk.first,
                cause=self.known.cause,
                outcome=outcome,
                reason=reason,
                failure=answer.failure if isinstance(answer, PageFailed) else None,
                began_at_ms=self.known.began_at_ms,
                took_ms=self._heard.now_ms - self.known.asked_at_ms,
                pages=len(walk.pages) + (page is not None),
                entries=walk.count + (0 if page is None else len(page.items)),
                cursors=len(walk.pages) + (page is not None and page.next_cursor is not None),
                spoiled=walk.spoiled,
                spoiled_in_row=after.pacing.spoiled_in_row,
                failures=after.pacing.failures,
                due_at_ms=after.pacing.due_at_ms if after.phase is Phase.STALE else None,
            )
        )

    def _outcome(self, walk: Walk, answer: i.PageAnswer | None) -> tuple[Outcome, str]:
        if isinstance(answer, PageArrived):
            published = next((one for one in self._effects if isinstance(one, e.Publish)), None)
            if published is not None:
                return (Outcome.CHANGED if published.changed else Outcome.CHECKED), ""
            if self._overlong:
                return Outcome.OVERLONG, "over a bound of pages, items or bytes"
            return Outcome.SPOILED, "disturbed" if walk.spoiled else "conflicting duplicates"
        if isinstance(answer, PageFailed):
            timed_out = Outcome.TIMED_OUT if answer.failure.timed_out else None
            outcome = timed_out or _FAILED[classify_page(answer.failure, walk.cursor)]
            return outcome, answer.failure.reason
        if self._after.pacing.failures > self._before.pacing.failures:
            return Outcome.TIMED_OUT, "no answer in time"
        return Outcome.ABANDONED, self._abandoned()

    def _abandoned(self) -> str:
        if isinstance(self._heard, i.CredentialsChanged):
            return "credentials changed"
        if self._after.phase is Phase.UNSUPPORTED:
            return "no longer declared"
        return "link closed" if self._link.phase is LinkPhase.CLOSED else "link lost"

    def _parked(self, before: Parked | None, after: Parked | None) -> None:
        if after is not None and after is not before:
            self.told.append(ev.WasParked(**self._at, why=after))
        elif before is not None and after is None:
            self.told.append(ev.Unparked(**self._at))

    def _began(self, walk: Walk) -> None:
        now_ms, known = self._heard.now_ms, self.known
        cause = _cause(self._before, walk, self._heard)
        self.known = attrs.evolve(known, cause=cause, began_at_ms=now_ms, asked_at_ms=now_ms)
        self.told.append(
            ev.WalkBegan(
                **self._at,
                walk=walk.first,
                cause=cause,
                covered=walk.covered,
                noticed_at_ms=known.noticed_at_ms,
                notices=known.notices,
            )
        )


def _cause(before: Catalog, walk: Walk, heard: i.SessionInput) -> Cause:
    """What made a walk begin: an act of a caller, else what was owed at that time."""
    wish = None if walk.serves is None else _WISH[walk.serves]
    if wish is not None and (isinstance(heard, i.WishInput) or before.walk is not None):
        return wish
    if before.phase in (Phase.DISCONNECTED, Phase.INITIALIZING, Phase.UNSUPPORTED):
        return Cause.FIRST if before.snapshot is None else Cause.RELINKED
    if before.pacing.failures:
        return Cause.FAILED
    if before.pacing.spoiled_in_row:
        return Cause.SPOILED
    if before.doubt is not None:
        return _DOUBT[before.doubt]
    return wish or Cause.POLL
