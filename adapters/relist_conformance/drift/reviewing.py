"""``relist review``: one open item after the other, and a letter for each. Works on a pipe too.

Every decision is kept at once, so leaving early loses none.
"""

from collections.abc import Callable, Mapping

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.review import reviews
from relist.drift.values import Review, Why
from relist_conformance.drift import choosing, names, views
from relist_conformance.drift import told as t
from relist_conformance.drift.acting import (
    NOT_OBSERVED,
    NOTHING_OPEN,
    OPEN,
    Said,
    look_again,
)
from relist_conformance.drift.keeping import now_ms, opened, tell
from relist_conformance.drift.target import Asked
from relist_conformance.errors import ConformanceError
from relist_mcp.drift.schemas import relate
from relist_mcp.drift.store import Store

_QUIT, _SKIP = "q", "s"
Answer = Callable[[Store, Review], LedgerInput]


def review(said: Said, asked: Asked | None, consumer: str | None) -> int:
    """Ask about all that is open; with ``json``, only tell it."""
    complete = look_again(said, asked)
    with opened(said.store) as store:
        if said.json:
            _tell_all(said, store, consumer)
        else:
            _ask_all(said, store, consumer)
        left = len(_open(store, consumer))
    said.print(f"{left} left to review")
    if not complete:
        return NOT_OBSERVED
    return OPEN if left else NOTHING_OPEN


def _open(store: Store, consumer: str | None) -> list[Review]:
    found = reviews(store.ledger, relate)
    return [one for one in found if consumer is None or one.consumer == consumer]


def _tell_all(said: Said, store: Store, consumer: str | None) -> None:
    for one in _open(store, consumer):
        said.out.print(t.text(t.review_told(store.ledger, one)), soft_wrap=True)


def _ask_all(said: Said, store: Store, consumer: str | None) -> None:
    """What a decision settles is not asked again; what was skipped neither."""
    passed: set[tuple[str, str, object]] = set()
    while True:
        store.changed()
        waiting = (one for one in _open(store, consumer) if _key(one) not in passed)
        one = next(waiting, None)
        if one is None:
            return
        passed.add(_key(one))
        said.print(f"for {names.named(one.consumer)}:")
        views.show(said.out, views.review_lines(store.ledger, one))
        if not _decided(said, store, one):
            return


def _key(review: Review) -> tuple[str, str, object]:
    """A server in doubt is asked about once, whatever it offers."""
    if review.why is Why.SERVER:
        return "", "", review.ref.server
    definition = None if review.change is None else review.change.after.id
    return review.consumer, str(review.ref), definition


def _decided(said: Said, store: Store, review: Review) -> bool:
    """Ask until there is an answer that can be; False to stop."""
    answers = _answers(said, review)
    question = _question(review)
    while True:
        said.out.print(f"{question} ", end="")
        try:
            word = input().strip().lower()
        except EOFError:
            word = _QUIT
            said.out.print()
        if word == _QUIT:
            return False
        if word == _SKIP:
            return True
        if word in answers:
            try:
                tell(store, answers[word](store, review))
            except ConformanceError as error:  # it changed meanwhile, and is asked about anew
                said.print(f"not possible: {names.said(str(error))}")
            return True
        said.print(f"{names.said(word) or 'nothing'} is no answer here")


def _question(review: Review) -> str:
    numbers = "".join(f", {n} is candidate {n}" for n in range(1, len(review.candidates) + 1))
    if review.why is Why.SERVER:
        return "[a] it is the same server, [s]kip, [q]uit:"
    if review.change is None:
        return f"[s]kip, [q]uit{numbers}:"
    return "[a]pprove, [r]eject, [s]kip, [q]uit:"


def _answers(said: Said, review: Review) -> Mapping[str, Answer]:
    if review.why is Why.SERVER:
        return {
            "a": lambda store, one: i.ServerConfirmed(
                store.ledger.servers[one.ref.server].seen, said.who, said.why, now_ms()
            )
        }
    if review.change is not None:
        items = {review.ref: review.change.after.id}
        return {
            "a": lambda _, one: i.Approved(one.consumer, items, said.who, said.why, now_ms()),
            "r": lambda _, one: i.Rejected(one.consumer, items, said.who, said.why, now_ms()),
        }
    return {str(n): _to(said, n - 1) for n in range(1, len(review.candidates) + 1)}


def _to(said: Said, number: int) -> Answer:
    """The candidate of this number is what it was. Only what was shown: its body is equal."""

    def rebound(store: Store, review: Review) -> LedgerInput:
        new = review.candidates[number]
        now = choosing.everything(store.ledger)
        if new not in now:
            raise ConformanceError("the candidate is gone")
        return i.Rebound(review.consumer, review.ref, new, now[new], said.who, said.why, now_ms())

    return rebound
