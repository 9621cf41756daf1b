"""Values of drift as JSON values and back, for what is kept in files.

Order is kept where it matters (a ledger goes on alike after it was read). Only what is named here
is ever made; what does not fit raises KeyError, TypeError or ValueError, and the file's reader says
where. Text may hold lone surrogates and NUL: bytes of JSON hold both.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relist.drift.ledger import Entry
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    ChangeClass,
    Chosen,
    Definition,
    ExactSelection,
    FollowPolicy,
    Hints,
    Known,
    Newcomers,
    Profile,
    Rule,
    Selection,
    ServerIdentity,
    ServerSelection,
    Subject,
)
from relist.policy import Risk

Json = Any
"""What ``json`` makes: checked by use, since whatever does not fit raises."""

Refs = Callable[[Iterable[CapabilityRef]], list[CapabilityRef]]


def packed(data: Json) -> bytes:
    """JSON in few bytes: UTF-8, in which a lone surrogate keeps its three."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def unpacked(data: bytes) -> Json:
    """What was packed. Raises ValueError."""
    return json.loads(data.decode("utf-8", "surrogatepass"))


# --- references, ids, definitions -----------------------------------------------------------------


def ref_json(ref: CapabilityRef) -> Json:
    """Server, subject, key."""
    return [ref.server, ref.subject.value, ref.key]


def ref_of(data: Json) -> CapabilityRef:
    """What ``ref_json`` wrote."""
    server, subject, key = data
    return CapabilityRef(_text(server), Subject(subject), _text(key))


def id_json(id: CapabilityId | None) -> Json:
    """Formula and digest."""
    return None if id is None else [id.formula, id.digest]


def id_of(data: Json) -> CapabilityId:
    """What ``id_json`` wrote."""
    formula, digest = data
    return CapabilityId(_whole(formula), _text(digest))


def definition_json(definition: Definition) -> Json:
    """All but ``upstream``, which may change where nothing else does."""
    return {
        "ref": ref_json(definition.ref),
        "id": id_json(definition.id),
        "body": id_json(definition.body),
        # Canonical JSON is a text; opaque bytes need not be, and come back all the same.
        "fields": {
            name: value.decode("utf-8", "surrogateescape")
            for name, value in definition.fields.items()
        },
        "hints": list(definition.hints),
    }


def definition_of(data: Json, upstream: CapabilityId) -> Definition:
    """What ``definition_json`` wrote."""
    fields = {
        _text(name): _text(value).encode("utf-8", "surrogateescape")
        for name, value in data["fields"].items()
    }
    read_only, destructive, open_world = data["hints"]
    return Definition(
        ref_of(data["ref"]),
        id_of(data["id"]),
        upstream,
        id_of(data["body"]),
        fields,
        Hints(_flag(read_only), _flag(destructive), _flag(open_world)),
    )


# --- servers --------------------------------------------------------------------------------------


def server_json(server: ServerIdentity) -> Json:
    """The configured id, and the evidence there is."""
    return {"id": server.id, **server.evidence()}


def server_of(data: Json) -> ServerIdentity:
    """What ``server_json`` wrote."""
    return ServerIdentity(**{name: _text(value) for name, value in data.items()})


def known_json(known: Known) -> Json:
    """A server as it is known."""
    confirmed, seen = server_json(known.confirmed), server_json(known.seen)
    return {"confirmed": confirmed, "seen": seen, "partition": known.partition}


def known_of(data: Json) -> Known:
    """What ``known_json`` wrote."""
    confirmed, seen = server_of(data["confirmed"]), server_of(data["seen"])
    return Known(confirmed, seen, _text(data["partition"]))


# --- profiles -------------------------------------------------------------------------------------


def profile_json(profile: Profile, refs: Refs = list) -> Json:
    """A profile; ``refs`` may bring its items into another order."""
    return {
        "consumer": profile.consumer,
        "selections": [_selection_json(one, refs) for one in profile.selections],
        "follow": {
            "classes": {
                risk.value: sorted(one.value for one in classes)
                for risk, classes in profile.follow.classes.items()
            },
            "reappearing": sorted(risk.value for risk in profile.follow.reappearing),
        },
    }


def _selection_json(selection: Selection, refs: Refs) -> Json:
    items = [
        {
            "server": ref.server,
            "subject": ref.subject.value,
            "key": ref.key,
            "rule": selection.items[ref].rule.value,
            "risk": selection.items[ref].risk.value,
        }
        for ref in refs(selection.items)
    ]
    if isinstance(selection, ExactSelection):
        return {"exactly": items}
    return {
        "whole_server": selection.server,
        "rule": selection.rule.value,
        "newcomers": selection.newcomers.value,
        "trust_annotations": selection.trust_annotations,
        "items": items,
        "subjects": sorted(subject.value for subject in selection.subjects),
    }


def profile_of(data: Json) -> Profile:
    """What ``profile_json`` wrote."""
    follow = data["follow"]
    return Profile(
        _text(data["consumer"]),
        tuple(_selection_of(one) for one in data["selections"]),
        FollowPolicy(
            {
                Risk(risk): frozenset(ChangeClass(one) for one in classes)
                for risk, classes in follow["classes"].items()
            },
            frozenset(Risk(risk) for risk in follow["reappearing"]),
        ),
    )


def _selection_of(data: Json) -> Selection:
    if "exactly" in data:
        return ExactSelection(_items_of(data["exactly"]))
    return ServerSelection(
        _text(data["whole_server"]),
        Rule(data["rule"]),
        Newcomers(data["newcomers"]),
        data["trust_annotations"] is True,
        _items_of(data["items"]),
        frozenset(Subject(one) for one in data["subjects"]),
    )


def _items_of(data: Json) -> dict[CapabilityRef, Chosen]:
    return {
        ref_of((one["server"], one["subject"], one["key"])): Chosen(
            Rule(one["rule"]), Risk(one["risk"])
        )
        for one in data
    }


# --- entries --------------------------------------------------------------------------------------


def entry_json(entry: Entry) -> Json:
    """A line of the history, without what does not apply to it."""
    told: Mapping[str, Json] = {
        "number": entry.number,
        "at_ms": entry.at_ms,
        "what": entry.what,
        "who": entry.who,
        "why": entry.why,
        "consumer": entry.consumer,
        "ref": None if entry.ref is None else ref_json(entry.ref),
        "before": id_json(entry.before),
        "after": id_json(entry.after),
    }
    return {name: value for name, value in told.items() if value is not None}


def entry_of(data: Json) -> Entry:
    """What ``entry_json`` wrote."""
    return Entry(
        _whole(data["number"]),
        _whole(data["at_ms"]),
        _text(data["what"]),
        _text(data["who"]),
        _text(data["why"]),
        data.get("consumer"),
        ref_of(data["ref"]) if "ref" in data else None,
        id_of(data["before"]) if "before" in data else None,
        id_of(data["after"]) if "after" in data else None,
    )


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _whole(value: Json) -> int:
    if type(value) is not int:
        raise TypeError("no integer")
    return value


def _flag(value: Json) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise TypeError("no flag")
    return value
