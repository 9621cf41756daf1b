"""What the commands do, once their options are read. Each returns its exit code."""

from collections.abc import Iterable
from pathlib import Path

import anyio
from attrs import evolve, frozen
from rich.console import Console

from relist.drift import inputs as i
from relist.drift.classify import classify
from relist.drift.ledger import Ledger
from relist.drift.review import reviews
from relist.drift.values import CapabilityRef, Review, ServerIdentity, Why, continues, in_order
from relist_conformance.drift import choosing, names, views
from relist_conformance.drift import told as t
from relist_conformance.drift.keeping import kept, now_ms, opened, plainly, tell
from relist_conformance.drift.observe import Observed, observe
from relist_conformance.drift.pinning import Decided, Wish, plan
from relist_conformance.drift.target import Asked, identity
from relist_conformance.errors import ConformanceError, quoted
from relist_mcp.drift.lockfile import lock_of, written
from relist_mcp.drift.schemas import relate

NOTHING_OPEN, OPEN, NOT_OBSERVED = 0, 1, 3
DECLINED = 1


@frozen
class Said:
    """The options that all commands share."""

    out: Console
    err: Console
    store: Path | None
    who: str
    why: str
    yes: bool = False
    json: bool = False

    def decided(self) -> Decided:
        """They decide now."""
        return Decided(self.who, self.why, now_ms())

    def confirms(self, question: str) -> bool:
        """A yes, by an option or in person. No answer is a no."""
        if self.yes:
            return True
        self.err.print(f"{question} [y/N] ", end="")
        try:
            return input().strip().lower() in ("y", "yes")
        except EOFError:
            self.err.print()
            return False

    def print(self, line: str) -> None:
        """To people, or to programs on stderr, so that stdout holds JSON only."""
        (self.err if self.json else self.out).print(line, soft_wrap=True)


# --- observing ------------------------------------------------------------------------------------


def looked(asked: Asked, known: Iterable[ServerIdentity]) -> tuple[ServerIdentity, Observed]:
    """Look at a server once. Raises ConformanceError."""
    server = identity(asked, known)
    return server, anyio.run(observe, asked, server, now_ms())


def _confirmed(ledger: Ledger) -> list[ServerIdentity]:
    return [known.confirmed for known in ledger.servers.values()]


def _complain(said: Said, observed: Observed) -> None:
    for failure in observed.failures:
        said.err.print(
            f"relist: {failure.subject.value}s not observed: {names.said(failure.why)}",
            soft_wrap=True,
        )


def look_again(said: Said, asked: Asked | None) -> bool:
    """Observe a target, if there is one, and keep what was seen; whether all of it was."""
    if asked is None:
        return True
    ledger = kept(said.store)
    server, observed = looked(asked, _confirmed(ledger))
    if server.id not in ledger.servers:
        raise ConformanceError(f"the server {quoted(server.id)} is not known: see 'relist pin'")
    observed = _with_undeclared(observed, ledger, server)
    with opened(said.store) as store:
        for heard in observed.all():
            tell(store, heard)
    _complain(said, observed)
    return not observed.failures


def _with_undeclared(observed: Observed, ledger: Ledger, server: ServerIdentity) -> Observed:
    """What a server had, and now does not have at all, was not listed: it proves nothing."""
    missing = tuple(
        i.ObservationFailed(server.id, subject, "the server does not offer them now", now_ms())
        for subject in observed.undeclared
        if ledger.seen.get((server.id, subject))
    )
    return evolve(observed, failures=(*observed.failures, *missing))


# --- pin ------------------------------------------------------------------------------------------


def pin(said: Said, asked: Asked, wish: Wish) -> int:
    """Show what there is, and approve it. Never without a yes."""
    ledger = kept(said.store)
    known = [*_confirmed(ledger), *(wish.lock.servers if wish.lock else ())]
    server, observed = looked(asked, known)
    observed = _with_undeclared(observed, ledger, server)
    if observed.failures:
        _complain(said, observed)
        if server.id in ledger.servers:
            with opened(said.store) as store:
                for heard in observed.all():
                    tell(store, heard)
        said.err.print("relist: nothing was approved")
        return NOT_OBSERVED
    made = plan(ledger, wish, server, observed, said.decided())
    _show_plan(said, made.after, made.approves)
    question = f"approve {len(made.approves)} for {names.named(wish.consumer)}?"
    if made.approves and not said.confirms(question):
        said.err.print("relist: declined, nothing was kept")
        return DECLINED
    with opened(said.store, create=True) as store:
        for told in made.told:
            tell(store, told)
        now = store.ledger
    if said.json:
        said.out.print(t.text(t.status_told(now)), soft_wrap=True)
    said.print(f"approved {len(made.approves)}, {len(made.leaves)} left to review")
    return OPEN if made.leaves else NOTHING_OPEN


def _show_plan(said: Said, ledger: Ledger, approves: Iterable[Review]) -> None:
    for review in approves:
        views.show(said.err if said.json else said.out, views.review_lines(ledger, review))


# --- looking --------------------------------------------------------------------------------------


def status(said: Said, asked: Asked | None) -> int:
    """What each consumer sees, and what is open."""
    complete = look_again(said, asked)
    with opened(said.store) as store:
        ledger = store.ledger
    open_ = len(list(reviews(ledger, relate)))
    if said.json:
        said.out.print(t.text({**t.status_told(ledger), "open": open_}), soft_wrap=True)
    else:
        views.show(said.out, views.status_lines(ledger))
        said.print(f"{open_} to review")
    if not complete:
        return NOT_OBSERVED
    return OPEN if open_ else NOTHING_OPEN


def audit(said: Said, after: int, consumer: str | None, key: str | None) -> int:
    """The history."""
    with opened(said.store) as store, plainly():
        for record in store.entries(after):
            entry = record.entry
            if consumer is not None and entry.consumer != consumer:
                continue
            if key is not None and (entry.ref is None or key not in choosing.spellings(entry.ref)):
                continue
            line = t.text(t.entry_told(entry)) if said.json else views.entry_line(entry)
            said.out.print(line, soft_wrap=True)
    return 0


def lock(said: Said, file: Path) -> int:
    """Write the lock file, whole or not at all."""
    with opened(said.store) as store:
        content = written(lock_of(store.ledger))
    draft = file.with_name(f".{file.name}.new")
    try:
        draft.write_bytes(content)
        draft.replace(file)
    except OSError as error:
        raise ConformanceError(f"lock file {quoted(str(file))}: {error.strerror}") from None
    return 0


# --- deciding -------------------------------------------------------------------------------------


def approve(said: Said, consumer: str, wanted: Iterable[str]) -> int:
    """Approve what is named, as it is now."""
    with opened(said.store) as store:
        items = choosing.chosen_of(
            choosing.of_consumer(store.ledger, consumer), wanted, only_ids=said.yes
        )
        _show(said, store.ledger, consumer, items)
        if not said.confirms(f"approve {len(items)} for {names.named(consumer)}?"):
            return DECLINED
        decided = said.decided()
        tell(store, decided.approved(consumer, dict(items)))
    said.print(f"approved {len(items)}")
    return 0


def reject(said: Said, consumer: str, wanted: Iterable[str]) -> int:
    """Reject what is named, as it is now."""
    with opened(said.store) as store:
        items = choosing.chosen_of(choosing.of_consumer(store.ledger, consumer), wanted)
        _show(said, store.ledger, consumer, items)
        if not said.confirms(f"reject {len(items)} for {names.named(consumer)}?"):
            return DECLINED
        tell(store, i.Rejected(consumer, items, said.who, said.why, now_ms()))
    said.print(f"rejected {len(items)}")
    return 0


def rebind(said: Said, consumer: str, old: str, new: str) -> int:
    """What ``old`` was is ``new`` now, says a person."""
    with opened(said.store) as store:
        ledger = store.ledger
        before = _named_exactly(ledger, consumer, old)
        items = choosing.chosen_of(choosing.everything(ledger), [new], only_ids=said.yes)
        ((ref, id),) = items.items()
        said.print(f"{names.of(before)} becomes {names.of(ref)}")
        _show_new(said, ledger, ref)
        if not said.confirms(f"rebind it, and approve {names.short(id)}?"):
            return DECLINED
        tell(store, i.Rebound(consumer, before, ref, id, said.who, said.why, now_ms()))
    said.print("rebound 1")
    return 0


def _named_exactly(ledger: Ledger, consumer: str, word: str) -> CapabilityRef:
    profile = choosing.profile_of(ledger, consumer)
    named = [
        ref
        for selection in profile.selections
        for ref in selection.items
        if word in choosing.spellings(ref)
    ]
    if len(named) != 1:
        raise ConformanceError(f"{quoted(word)} is named {len(named)} times by {quoted(consumer)}")
    return named[0]


def confirm(said: Said, server: str) -> int:
    """The server is still the same, says a person."""
    with opened(said.store) as store:
        known = store.ledger.servers.get(server)
        if known is None:
            raise ConformanceError(f"no server {quoted(server)}")
        if continues(known.confirmed, known.seen):
            said.print("its identity is not in doubt")
            return 0
        views.show(said.out, views.server_lines(store.ledger, server))
        if not said.confirms(f"is this still {names.named(server)}?"):
            return DECLINED
        tell(store, i.ServerConfirmed(known.seen, said.who, said.why, now_ms()))
    said.print("confirmed 1")
    return 0


def _show(said: Said, ledger: Ledger, consumer: str, items: Iterable[CapabilityRef]) -> None:
    by_ref = {one.ref: one for one in reviews(ledger, relate) if one.consumer == consumer}
    out = said.err if said.json else said.out
    for ref in in_order(items):
        if ref in by_ref:
            views.show(out, views.review_lines(ledger, by_ref[ref]))
        else:
            said.print(f"{names.of(ref)}: nothing is open")


def _show_new(said: Said, ledger: Ledger, ref: CapabilityRef) -> None:
    seen = ledger.version(ref)
    if seen is not None and seen.definition is not None:
        change = classify(None, seen.definition, relate)
        review = Review("", ref, Why.UNREVIEWED, change)
        views.show(said.err if said.json else said.out, views.review_lines(ledger, review))
