"""What happened, for people: lines of text, the same while it happens and on replay.

A line is when, what it is about, and what happened. Names that a server gave are made safe.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from relist.values import CHANNELS, KINDS, Capabilities, Failure
from relist_conformance.errors import plain
from relist_mcp import events as ev
from relist_mcp.changes import change
from relist_mcp.events import Event

NAMES_MAX = 10  # entries of a list that are named
_NAME_MAX = 60  # characters of a name
_TEXT_MAX = 1_000  # characters of a line


class Line(NamedTuple):
    """One line; ``about`` is empty where it goes on with the one before it."""

    at_ms: int
    about: str
    text: str

    def shown(self, began_ms: int) -> str:
        """The line, with the time since the beginning in seconds."""
        return f"{(self.at_ms - began_ms) / 1000:>9.3f}  {self.about:<18}  {self.text}"


def lines_of(event: Event) -> Iterator[Line]:
    """What there is to say of an event."""
    if isinstance(event, ev.OfKind):
        about, texts = event.kind.value, _of_kind(event)
    else:
        about, texts = _of_all(event)
    for text in texts:
        yield Line(event.at_ms, about, plain(text, _TEXT_MAX))
        about = ""


# --- the link, push and notices -------------------------------------------------------------------


def _of_all(event: Event) -> tuple[str, Iterable[str]]:
    match event:
        case ev.LinkMoved():
            return "link", [_joined(f"{event.before.value} -> {event.after.value}", _next(event))]
        case ev.Agreed():
            offer = _offered(event.capabilities)
            return "link", [f"{event.era.value} {event.version}: {offer}"]
        case ev.ListenMoved():
            return "push", [_push(event)]
        case ev.CredentialsMoved():
            whose = "of another partition" if event.foreign else "of the same partition"
            return "credentials", [f"changed, {whose}"]
        case ev.Noticed():
            return "notice", [f"{event.channel.value}: {_heeded(event)}"]
        case ev.ContentNoticed():
            return "update", ["of a resource" if event.believed else "of a resource: not believed"]
        case ev.Noted():
            kind = "" if event.kind is None else f" ({event.kind.value})"
            return "note", [f"{event.rule}: {event.text}{kind}"]
        case _:
            return "", [type(event).__name__]


def _next(event: ev.LinkMoved | ev.WalkEnded) -> str:
    if event.due_at_ms is None:
        return ""
    return f"next try in {max(0, event.due_at_ms - event.at_ms)} ms"


def _offered(offer: Capabilities) -> str:
    """The kinds that are declared, and for which notices are."""
    kinds = [kind.value for kind in KINDS if kind in offer.kinds]
    noticed = [channel.value for channel in CHANNELS if channel in offer.channels]
    updates = "updates of resources" if offer.subscribe else ""
    told = f"declares {', '.join(kinds) or 'nothing'}"
    return _joined(told, f"notices of {', '.join(noticed) or 'nothing'}", updates, mark="; ")


def _push(event: ev.ListenMoved) -> str:
    granted = ", ".join(channel.value for channel in CHANNELS if channel in event.granted)
    why = "" if event.failure is None else _failure(event.failure)
    moved = f"{event.before.value} -> {event.after.value} ({event.carrier.value})"
    return _joined(moved, f"for {granted}" if granted else "", why)


def _heeded(event: ev.Noticed) -> str:
    fault = "" if event.fault is None else f"breaks {event.fault}"
    if not event.kinds:
        return _joined("not heeded", fault)
    if event.merged:
        return _joined("known already", fault)
    return _joined(f"heeded by {', '.join(kind.value for kind in event.kinds)}", fault)


def _failure(failure: Failure) -> str:
    """Our words and numbers: the text of the peer is not kept."""
    code = "" if failure.code is None else f"code {failure.code}"
    status = "" if failure.status is None else f"status {failure.status}"
    after_ms = failure.retry_after_ms
    return _joined(
        failure.reason, code, status, "" if after_ms is None else f"Retry-After {after_ms} ms"
    )


# --- one kind -------------------------------------------------------------------------------------


def _of_kind(event: ev.OfKind) -> Iterable[str]:
    match event:
        case ev.WalkBegan():
            notices = f"after {count(event.notices, 'notice')}" if event.notices else ""
            covered = "" if event.covered else "uncovered"
            return [_joined(f"walk {event.walk} begins: {event.cause.value}", notices, covered)]
        case ev.PageListed():
            page = f"walk {event.walk}: page {event.number}"
            more = "more follow" if event.more else "the last"
            return [_joined(page, count(event.entries, "entry"), more, f"{event.took_ms} ms")]
        case ev.WalkEnded():
            return [_walk_ended(event)]
        case ev.Published():
            return _published(event)
        case ev.Withdrawn():
            return ["withdrawn: nothing of it may be shown any more"]
        case ev.Doubted():
            return [f"doubted: {event.doubt.value}"]
        case ev.WasParked():
            return [f"parked: {event.why.value}"]
        case ev.Unparked():
            return ["no longer parked"]
        case ev.Adopted():
            return [f"{event.count} of generation {event.generation} given to a model"]
        case _:
            return [type(event).__name__]


def _walk_ended(event: ev.WalkEnded) -> str:
    failure = "" if event.failure is None else _failure(event.failure)
    return _joined(
        f"walk {event.walk} ends: {event.outcome.value}",
        failure or event.reason,
        count(event.pages, "page"),
        count(event.entries, "entry"),
        f"{event.duration_ms} ms",
        _next(event),
    )


def _published(event: ev.Published) -> Iterator[str]:
    listed = event.snapshot
    silent = event.changed and event.replaced is not None and event.covered and not event.notices
    yield _joined(
        f"generation {listed.generation}",
        count(len(listed.items), "entry"),
        "changed" if event.changed else "unchanged",
        "though no notice came" if silent else "",
        "" if listed.clean else "spoiled",
        f"{len(listed.ambiguous)} ambiguous" if listed.ambiguous else "",
        "" if event.lag_ms is None else f"{event.lag_ms} ms after the notice",
    )
    if not event.changed:
        return
    difference = change(event.kind, event.replaced, listed)
    if difference is not None:
        yield from _named("+", [item.key for item in difference.added])
        yield from _named("-", [item.key for item in difference.removed])
        altered = [(one.after.key, one.fields) for one in difference.changed]
        for key, fields in altered[:NAMES_MAX]:
            yield f"~ {_name(key)}: {_names(fields)}"
        yield from _rest("~", len(altered))


def _named(sign: str, names: list[str]) -> Iterator[str]:
    yield from (f"{sign} {_name(name)}" for name in names[:NAMES_MAX])
    yield from _rest(sign, len(names))


def _rest(sign: str, count: int) -> Iterator[str]:
    if count > NAMES_MAX:
        yield f"{sign} and {count - NAMES_MAX} more"


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(_name, names[:NAMES_MAX]))
    return shown if len(names) <= NAMES_MAX else f"{shown} and {len(names) - NAMES_MAX} more"


def _name(name: str) -> str:
    return plain(name, _NAME_MAX)


def count(number: int, what: str) -> str:
    """So many of them, in words."""
    if number == 1:
        return f"1 {what}"
    return f"{number} {what[:-1]}ies" if what.endswith("y") else f"{number} {what}s"


def _joined(*parts: str, mark: str = ", ") -> str:
    """Those that are not empty."""
    return mark.join(part for part in parts if part)
