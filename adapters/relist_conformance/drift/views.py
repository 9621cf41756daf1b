"""What people are shown for a decision: what differs, what that can do, whom it concerns."""

from collections.abc import Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from relist.drift.ledger import Entry, Ledger, selected, standing
from relist.drift.policy import chosen, exposable
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    FieldChange,
    Review,
    ServerIdentity,
    Why,
    in_order,
)
from relist_conformance.drift import names
from relist_conformance.drift.difference import difference

FIELDS_MAX = 30
_STYLES = {"-": "red", "+": "green"}


def show(out: Console, lines: Iterator[str]) -> None:
    """Print lines, those that differ in colour."""
    for line in lines:
        style = _STYLES.get(line.lstrip()[:1], "") if line.startswith("    ") else ""
        out.print(Text(line, style=style), soft_wrap=True)


def when(at_ms: int) -> str:
    """A time in UTC, to the second."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return f"{at_ms} ms"


# --- one review -----------------------------------------------------------------------------------


def review_lines(ledger: Ledger, review: Review) -> Iterator[str]:
    """Everything about one open review. Rule: DRIFT-29."""
    ref = review.ref
    yield f"{names.of(ref)}: {review.why.value}"
    if review.change is not None:
        yield f"  definition  {names.short(review.change.after.id)}"
        before = review.change.before
        yield f"  approved    {'nothing yet' if before is None else names.short(before.id)}"
        classes = ", ".join(sorted(one.value for one in review.change.classes))
        if classes:
            yield f"  changes     {classes}"
    yield f"  concerns    {', '.join(map(names.named, concerned(ledger, ref)))}"
    yield from _source(ledger, ref)
    if review.why is Why.SERVER:
        yield from server_lines(ledger, ref.server)
    if review.change is not None:
        yield from _fields(review.change.fields)
    for number, candidate in enumerate(review.candidates, 1):
        yield f"  candidate {number}: {names.of(candidate)}"


def concerned(ledger: Ledger, ref: CapabilityRef) -> list[str]:
    """The consumers that may see it, once it is approved. Rule: DRIFT-44."""
    return sorted(
        name for name, profile in ledger.profiles.items() if exposable(chosen(profile, ref))
    )


def _source(ledger: Ledger, ref: CapabilityRef) -> Iterator[str]:
    seen, known = ledger.version(ref), ledger.servers.get(ref.server)
    if seen is not None:
        yield f"  {seen.presence.value:10}  since {when(seen.since_ms)}"
    if known is not None:
        yield f"  comes from  {evidence(known.seen)}"


def evidence(server: ServerIdentity) -> str:
    """What is known of a server beyond its id."""
    known = server.evidence().items()
    return ", ".join(f"{name} {names.named(value)}" for name, value in known) or "no evidence"


def server_lines(ledger: Ledger, server: str) -> Iterator[str]:
    """How the identity of a server has changed."""
    known = ledger.servers[server]
    before, now = known.confirmed.evidence(), known.seen.evidence()
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"  {name}"
            yield from (f"    - {names.named(one)}" for one in (before.get(name),) if one)
            yield from (f"    + {names.named(one)}" for one in (now.get(name),) if one)


def _fields(changes: tuple[FieldChange, ...]) -> Iterator[str]:
    for change in changes[:FIELDS_MAX]:
        classes = ", ".join(sorted(one.value for one in change.classes))
        yield f"  {names.said(change.name) or '(its text)'}: {classes}"
        yield from (f"    {line}" for line in difference(change.before, change.after))
    if len(changes) > FIELDS_MAX:
        yield f"  and {len(changes) - FIELDS_MAX} more fields differ"


# --- all there is ---------------------------------------------------------------------------------


def status_lines(ledger: Ledger) -> Iterator[str]:
    """The servers, and what each consumer sees or waits for."""
    for name, known in ledger.servers.items():
        doubt = "; IDENTITY IN DOUBT" if known.in_doubt else ""
        yield f"server {names.named(name)}: {evidence(known.seen)}{doubt}"
    for (server, subject), why in ledger.failing.items():
        yield f"not observed: {subject.value}s of {names.named(server)}: {names.said(why)}"
    for consumer, profile in ledger.profiles.items():
        made = ledger.publications.get(consumer)
        generation = 0 if made is None else made.generation
        yield f"consumer {names.named(consumer)}: generation {generation}"
        for ref in in_order(selected(ledger, profile)):
            state = standing(ledger, consumer, ref)
            if isinstance(state, CapabilityId):
                yield f"  shown    {names.short(state)}  {names.of(ref)}"
            elif state is not None:
                yield f"  withheld {_seen_id(ledger, ref)}  {names.of(ref)}: {state.value}"


def _seen_id(ledger: Ledger, ref: CapabilityRef) -> str:
    seen = ledger.version(ref)
    if seen is None or seen.definition is None:
        return "-" * names.DIGITS
    return names.short(seen.definition.id)


def entry_line(entry: Entry) -> str:
    """One line of the history."""
    about = [f"{entry.number:6}", when(entry.at_ms), entry.what, f"by {names.named(entry.who)}"]
    if entry.consumer is not None:
        about.append(f"for {names.named(entry.consumer)}")
    if entry.ref is not None:
        about.append(names.of(entry.ref))
    ids = [names.short(id) for id in (entry.before, entry.after) if id is not None]
    if ids:
        about.append(" -> ".join(ids))
    why = f": {names.said(entry.why)}" if entry.why else ""
    return "  ".join(about) + why
