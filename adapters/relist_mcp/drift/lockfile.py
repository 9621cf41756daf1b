"""``relist.lock``: what was approved, in a file that is reviewed like code.

Stable byte for byte: equal approvals give equal files, so it does not say who approved, when and
why (the store's history does, and so does the commit). It is read strictly: a file that is not as
``written`` writes it is refused, and so is a definition whose id does not fit it. Rule: DRIFT-03.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache, reduce
from importlib.resources import files
from typing import Any, cast

import jsonschema_rs as js
from attrs import evolve

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Granted, Ledger
from relist.drift.policy import check, chosen, exposable
from relist.drift.receive import receive
from relist.drift.values import (
    FORMULA,
    CapabilityId,
    CapabilityRef,
    Definition,
    ExactSelection,
    FollowPolicy,
    Newcomers,
    Profile,
    Selection,
    ServerIdentity,
    Subject,
    in_order,
)
from relist.errors import PolicyError, RelistError
from relist.frozen import frozen
from relist_mcp.drift.canonical import reread, rewritten
from relist_mcp.drift.codec import profile_json, profile_of, server_json, server_of
from relist_mcp.drift.definitions import from_fields, opaque_of
from relist_mcp.drift.layout import laid_out

FORMAT = 1
SIZE_MAX = 64 * 1024 * 1024  # bytes of a lock file
_SAID_MAX = 200


class LockError(RelistError):
    """The lock file cannot be relied on: one line that names the place."""


@frozen
class Locked:
    """What one consumer is meant to see, and what was approved for it: one definition each."""

    profile: Profile
    approved: Mapping[CapabilityRef, Definition]


@frozen
class Lock:
    """What a lock file says: servers by id, consumers by name; both in order."""

    servers: tuple[ServerIdentity, ...]
    consumers: tuple[Locked, ...]


# --- from a ledger, and to one --------------------------------------------------------------------


def lock_of(ledger: Ledger) -> Lock:
    """What was approved, and not taken back: what is shown, or else was approved last."""
    consumers = tuple(_locked(ledger, name) for name in sorted(ledger.profiles))
    named = {ref.server for locked in consumers for ref in locked.approved}
    servers = (known.confirmed for name, known in ledger.servers.items() if name in named)
    return Lock(tuple(sorted(servers, key=lambda server: server.id)), consumers)


def _locked(ledger: Ledger, consumer: str) -> Locked:
    profile, shown = ledger.profiles[consumer], ledger.publications.get(consumer)
    approved: dict[CapabilityRef, Definition] = {}
    mine = [ref for name, ref in ledger.granted if name == consumer]
    for ref in in_order(mine):
        granted = ledger.grants(consumer, ref)
        id = None if shown is None else shown.manifest.items.get(ref)
        found = _wanted(granted, id)
        if found is not None and exposable(chosen(profile, ref)):
            approved[ref] = evolve(found, upstream=found.id)
    return Locked(profile, approved)


def _wanted(granted: Granted, shown: CapabilityId | None) -> Definition | None:
    if shown is not None:
        return granted.approved.get(shown)
    return None if granted.lapsed else granted.newest()


def expected(lock: Lock, locked: Locked, partition: str, at_ms: int = 0) -> Ledger:
    """A ledger in which exactly what is locked was seen and approved, and no policy decides."""
    strict = evolve(
        locked.profile,
        follow=FollowPolicy(),
        selections=tuple(_strict(one) for one in locked.profile.selections),
    )
    items = {ref: one.id for ref, one in locked.approved.items()}
    told: list[LedgerInput] = [
        i.ProfileSet(strict, "lock", "", at_ms),
        *_inventories(lock, locked, partition, at_ms),
        i.Approved(strict.consumer, items, "lock", "", at_ms),
    ]
    return reduce(lambda ledger, heard: receive(ledger, heard).state, told, Ledger())


def _strict(selection: Selection) -> Selection:
    if isinstance(selection, ExactSelection):
        return selection
    return evolve(selection, newcomers=Newcomers.REVIEW)


def _inventories(
    lock: Lock, locked: Locked, partition: str, at_ms: int
) -> Iterator[i.InventoryTaken]:
    for server in lock.servers:
        for subject in Subject:
            at = (server.id, subject)
            offered = {ref.key: one for ref, one in locked.approved.items() if ref[:2] == at}
            yield i.InventoryTaken(server, subject, offered, frozenset(), True, partition, at_ms)


# --- writing --------------------------------------------------------------------------------------


def written(lock: Lock) -> bytes:
    """The file. Raises LockError for what could not be read back as it is."""
    found = _text(lock)
    if read(found) != lock:
        raise LockError("the lock cannot be written: it would be read otherwise")
    return found


def _text(lock: Lock) -> bytes:
    servers = sorted(lock.servers, key=lambda server: server.id)
    consumers = sorted(lock.consumers, key=lambda locked: locked.profile.consumer)
    data = {
        "relist_lock": FORMAT,
        "servers": [server_json(server) for server in servers],
        "consumers": [_locked_json(locked) for locked in consumers],
    }
    return "\n".join((*laid_out(data), "")).encode()


def _locked_json(locked: Locked) -> dict[str, Any]:
    items = [_item_json(locked.approved[ref]) for ref in in_order(locked.approved)]
    return {**profile_json(locked.profile, in_order), "approved": items}


def _item_json(definition: Definition) -> dict[str, Any]:
    ref = definition.ref
    about = {"server": ref.server, "subject": ref.subject.value, "key": ref.key}
    about["id"] = str(definition.id)
    raw = definition.fields.get("")
    if raw is not None and definition.id == opaque_of(ref, raw).id:
        return {**about, "opaque": raw.decode("utf-8", "surrogateescape")}
    names = sorted(definition.fields, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return {**about, "definition": {name: reread(definition.fields[name]) for name in names}}


# --- reading --------------------------------------------------------------------------------------


def read(data: bytes) -> Lock:
    """What the file says. Raises LockError."""
    if len(data) > SIZE_MAX:
        raise LockError(f"is larger than {SIZE_MAX} bytes")
    data = data.replace(b"\r\n", b"\n")  # as some check it out
    found = _shaped(data)
    servers = tuple(server_of(one) for one in found["servers"])
    consumers = tuple(
        _locked_of(one, f"/consumers/{number}") for number, one in enumerate(found["consumers"])
    )
    _check_names(servers, consumers)
    lock = Lock(servers, consumers)
    _check_layout(data, lock)
    return lock


def _shaped(data: bytes) -> dict[str, Any]:
    """The JSON, in the shape of the schema."""
    try:
        found = json.loads(data, parse_int=_number, parse_constant=_no_number)
        error = next(_validator().iter_errors(found), None)
    except UnicodeDecodeError as wrong:
        raise LockError(f"is no UTF-8 at byte {wrong.start}") from None
    except json.JSONDecodeError as wrong:
        raise LockError(f"line {wrong.lineno}: {wrong.msg}") from None
    except (RecursionError, ValueError) as wrong:
        raise LockError(f"is no JSON that can be read: {wrong}") from None
    if error is not None:
        pointer = "".join(f"/{part}" for part in error.instance_path)
        raise LockError(f"{pointer or '/'}: {error.message[:_SAID_MAX]}")
    return cast("dict[str, Any]", found)


def _locked_of(data: Mapping[str, Any], at: str) -> Locked:
    profile = profile_of(data)
    try:
        check(profile)
    except PolicyError as error:
        raise LockError(f"{at}: {error}") from None
    approved: dict[CapabilityRef, Definition] = {}
    for number, one in enumerate(data["approved"]):
        here = f"{at}/approved/{number}"
        definition = _item_of(one, here)
        if definition.ref in approved:
            raise LockError(f"{here}: {definition.ref} is there twice")
        if not exposable(chosen(profile, definition.ref)):
            raise LockError(f"{here}: {definition.ref} is not selected, or denied")
        approved[definition.ref] = definition
    return Locked(profile, approved)


def _item_of(data: Mapping[str, Any], at: str) -> Definition:
    ref = CapabilityRef(data["server"], Subject(data["subject"]), data["key"])
    if "opaque" in data:
        found = opaque_of(ref, data["opaque"].encode("utf-8", "surrogateescape"))
    else:
        try:
            fields = {name: rewritten(value) for name, value in data["definition"].items()}
            found = from_fields(ref, fields)
        except ValueError:
            raise LockError(f"{at}/definition: has no canonical form") from None
    formula = data["id"].partition(":")[0]
    if formula != f"relist{FORMULA}":
        raise LockError(f"{at}/id: {formula} is a formula that this version does not know")
    if str(found.id) != data["id"]:
        raise LockError(f"{at}: {ref} does not have this id, but {found.id}")
    return found


def _check_names(servers: tuple[ServerIdentity, ...], consumers: tuple[Locked, ...]) -> None:
    ids = [server.id for server in servers]
    names = [locked.profile.consumer for locked in consumers]
    for what, listed in (("servers", ids), ("consumers", names)):
        for number, name in enumerate(listed):
            if name in listed[:number]:
                raise LockError(f"/{what}/{number}: {name!r} is there twice")
    for number, locked in enumerate(consumers):
        for place, ref in enumerate(locked.approved):
            if ref.server not in ids:
                at = f"/consumers/{number}/approved/{place}/server"
                raise LockError(f"{at}: there is no server {ref.server!r}")


def _check_layout(data: bytes, lock: Lock) -> None:
    """Whoever reviews the file must see what is read: no second name, no other order."""
    wanted = _text(lock)
    if data != wanted:
        lines = zip(data.split(b"\n"), wanted.split(b"\n"), strict=False)
        differ = (number for number, (is_, as_) in enumerate(lines, 1) if is_ != as_)
        raise LockError(f"line {next(differ)}: is not as 'relist lock' writes it")


def _number(text: str) -> int | float:
    return reread(text.encode())  # type: ignore[no-any-return]


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


@cache
def _validator() -> js.Validator:
    schema = files("relist_specs") / "schemas" / "lock.schema.json"
    return js.validator_for(json.loads(schema.read_bytes()))
