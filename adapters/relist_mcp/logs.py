"""What is logged: one record for each event, with its fields as attributes of the record.

Logger ``relist_mcp``. Each field is an attribute with the prefix ``relist_`` and stands in the
message as well, so that any formatter does. Publications that differ are logged at INFO; what is
parked, refused or published though it was disturbed, at WARNING; all else at DEBUG. From the
records alone a missed notice, a walk that never ended, an older list that came late and the views
of different credentials can be told apart (OBS-07).

No field holds a credential, an argument or a text of the server, but for what the server says of
itself (see ``identity``); lists are logged as counts and digests. Rule: OBS-06.
"""

import itertools
import logging
import os
from collections.abc import Callable, Mapping
from hashlib import blake2b, sha256
from typing import Any

from relist.effects import Note
from relist.values import Capabilities, Failure, LinkPhase, Snapshot
from relist_mcp import events as ev
from relist_mcp.events import Event
from relist_mcp.fold import Told
from relist_mcp.identity import CLIENT_VERSION, Identity
from relist_mcp.loop import Fed

logger = logging.getLogger("relist_mcp")

_SALT = os.urandom(16)
_DIGEST_CHARS = 16
_numbers = itertools.count(1)

Fields = dict[str, Any]


class Log:
    """A watcher that logs. ``identity`` says who the server is now; ``number`` is unique here."""

    __slots__ = ("_identity", "number")

    def __init__(self, identity: Callable[[], Identity]) -> None:
        self.number = next(_numbers)
        self._identity = identity

    def __call__(self, fed: Fed, told: Told) -> None:
        """See ``fold.Watcher``."""
        for event in told:
            level = level_of(event)
            if logger.isEnabledFor(level):
                name, fields = described(event)
                _emit(level, name, {**fields, **self._common(fed, event)})

    def _common(self, fed: Fed, event: Event) -> Fields:
        """Whose record it is, and what was agreed on. Rule: OBS-01, OBS-03, OBS-09."""
        link, server = fed.after.link, self._identity()
        return {
            "session": self.number,
            "epoch": event.epoch,
            "at_ms": event.at_ms,
            "server": server.name,
            "server_version": server.version,
            "server_address": server.address,
            "client_version": CLIENT_VERSION,
            "era": None if link.era is None else link.era.value,
            "protocol_version": link.version,
            "partition": _partition(fed.after.catalogs[0].standing.partition),
        }


def note(found: Note, epoch: int) -> None:
    """Log what was found in a message of a server. Rule: OBS-06.

    An entry that is left out is named, since somebody looks for it; nothing else is. Rule: OBS-10.
    """
    about = repr(found.values) if found.rule == "OBS-10" else None
    if logger.isEnabledFor(logging.DEBUG):
        fields = {"epoch": epoch, "rule": found.rule, "reason": found.text, "about": about}
        _emit(logging.DEBUG, "noted", fields)


def level_of(event: Event) -> int:
    """How much an event matters to an operator."""
    match event:
        case ev.WasParked() | ev.LinkMoved(after=LinkPhase.PARKED | LinkPhase.REFUSED):
            return logging.WARNING
        case ev.Published() if not event.snapshot.clean:  # spoiled too often in a row
            return logging.WARNING
        case ev.Published(changed=True) | ev.Withdrawn():
            return logging.INFO
        case _:
            return logging.DEBUG


def described(event: Event) -> tuple[str, Fields]:
    """The name of an event for the log, and its own fields, all plain values."""
    match event:
        case ev.Noticed() | ev.ContentNoticed() | ev.Noted() | ev.CredentialsMoved():
            return _of_message(event)
        case ev.LinkMoved() | ev.Agreed() | ev.ListenMoved():
            return _of_link(event)
        case ev.WalkBegan() | ev.PageListed() | ev.WalkEnded():
            return _of_walk(event)
        case _:
            return _of_list(event)


def _of_message(
    event: ev.Noticed | ev.ContentNoticed | ev.Noted | ev.CredentialsMoved,
) -> tuple[str, Fields]:
    """Rule: OBS-01, OBS-11."""
    match event:
        case ev.Noticed():
            return "notice", {
                "channel": event.channel.value,
                "serial": event.serial,
                "kinds": _values(event.kinds),
                "rule": event.fault,
                "merged": event.merged,
            }
        case ev.ContentNoticed():
            return "content notice", {"serial": event.serial, "believed": event.believed}
        case ev.Noted():
            kind = None if event.kind is None else event.kind.value
            fields = {"rule": event.rule, "reason": event.text, "kind": kind}
            return "late answer" if event.late else "noted", {**fields, "serial": event.serial}
        case ev.CredentialsMoved():
            return "credentials changed", {"foreign": event.foreign}


def _of_link(event: ev.LinkMoved | ev.Agreed | ev.ListenMoved) -> tuple[str, Fields]:
    """Rule: OBS-09."""
    match event:
        case ev.LinkMoved():
            return "link", {
                "before": event.before.value,
                "after": event.after.value,
                "failures": event.failures,
                "due_in_ms": _until(event.due_at_ms, event),
            }
        case ev.Agreed():
            return "agreed", {"capabilities": _capabilities(event.capabilities)}
        case ev.ListenMoved():
            return "listen", {
                "before": event.before.value,
                "after": event.after.value,
                "carrier": event.carrier.value,
                "granted": _values(event.granted),
                "serial": event.serial,
                **_failure(event.failure),
            }


def _of_walk(event: ev.WalkBegan | ev.PageListed | ev.WalkEnded) -> tuple[str, Fields]:
    """Rule: OBS-02, OBS-03, OBS-08."""
    about = {"kind": event.kind.value, "walk": event.walk}
    match event:
        case ev.WalkBegan():
            return "walk began", {
                **about,
                "cause": event.cause.value,
                "covered": event.covered,
                "notices": event.notices,
            }
        case ev.PageListed():
            return "page", {
                **about,
                "page": event.number,
                "entries": event.entries,
                "more": event.more,
                "took_ms": event.took_ms,
            }
        case ev.WalkEnded():
            return "walk ended", {
                **about,
                "cause": event.cause.value,
                "outcome": event.outcome.value,
                "reason": event.reason,
                "began_at_ms": event.began_at_ms,
                "duration_ms": event.duration_ms,
                "pages": event.pages,
                "entries": event.entries,
                "cursors": event.cursors,
                "spoiled": event.spoiled,
                "spoiled_in_row": event.spoiled_in_row,
                "failures": event.failures,
                "due_in_ms": _until(event.due_at_ms, event),
                **_failure(event.failure),
            }


def _of_list(event: Event) -> tuple[str, Fields]:
    """Rule: OBS-03, OBS-08."""
    match event:
        case ev.Published():
            return "published", {
                "kind": event.kind.value,
                "changed": event.changed,
                "replaced": None if event.replaced is None else event.replaced.generation,
                "covered": event.covered,
                "notices": event.notices,
                "lag_ms": event.lag_ms,
                **_list(event.snapshot),
            }
        case ev.Withdrawn():
            return "withdrawn", {"kind": event.kind.value}
        case ev.Doubted():
            return "doubted", {"kind": event.kind.value, "doubt": event.doubt.value}
        case ev.WasParked():
            return "parked", {"kind": event.kind.value, "why": event.why.value}
        case ev.Unparked():
            return "unparked", {"kind": event.kind.value}
        case ev.Adopted():
            counts = {"adopted": event.count, "listed": event.listed}
            return "adopted", {
                "kind": event.kind.value,
                "generation": event.generation,
                **counts,
            }
        case _:
            raise AssertionError(f"nobody logs {type(event).__name__}")


# --- fields ---------------------------------------------------------------------------------------


def _list(listed: Snapshot) -> Fields:
    """A list by number and digest: of its keys, and of whole definitions (schemas and all else).

    Rule: OBS-03.
    """
    items = sorted(listed.items, key=lambda item: item.key)
    return {
        "generation": listed.generation,
        "walk": listed.walk,
        "entries": len(items),
        "ambiguous": len(listed.ambiguous),
        "clean": listed.clean,
        "scope": listed.scope.value,
        "names_digest": _digest(item.key.encode("utf-8", "surrogatepass") for item in items),
        "schema_digest": _digest(item.canonical_json for item in items),
    }


def _digest(parts: Any) -> str:
    found = sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big") + part)
    return found.hexdigest()[:_DIGEST_CHARS]


def _partition(partition: str) -> str:
    """A caller may name a partition after a person, so it is told apart and not told."""
    if not partition:
        return ""
    found = blake2b(partition.encode("utf-8", "surrogatepass"), key=_SALT, digest_size=8)
    return found.hexdigest()


def _failure(failure: Failure | None) -> Fields:
    """By number: its reason is a text of ours."""
    if failure is None:
        return {}
    return {"error_code": failure.code, "http_status": failure.status}


def _capabilities(declared: Capabilities) -> Mapping[str, Any]:
    return {
        "kinds": _values(declared.kinds),
        "channels": _values(declared.channels),
        "subscribe": declared.subscribe,
    }


def _values(members: Any) -> list[str]:
    return sorted(member.value for member in members)


def _until(at_ms: int | None, event: Event) -> int | None:
    return None if at_ms is None else max(0, at_ms - event.at_ms)


class _Text:
    """Fields as text, made when it is asked for: what is None is left out."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return " ".join(f"{name}={value!r}" for name, value in self._fields.items() if value != "")


def _emit(level: int, name: str, fields: Fields) -> None:
    known = {key: value for key, value in fields.items() if value is not None}
    extra = {f"relist_{key}": value for key, value in known.items()}
    logger.log(level, "%s %s", name, _Text(known), extra={"relist_event": name, **extra})
