"""The same for programs: JSON in ASCII, whole, since nobody's terminal shows it."""

import json
from typing import Any

from relist.drift.ledger import Entry, Ledger, selected, standing
from relist.drift.values import CapabilityId, CapabilityRef, Review, in_order
from relist_conformance.drift.views import concerned
from relist_mcp.drift.codec import entry_json, known_json, server_json


def text(data: Any) -> str:
    """One line."""
    return json.dumps(data)


def ref_told(ref: CapabilityRef) -> dict[str, str]:
    """A reference."""
    return {"server": ref.server, "subject": ref.subject.value, "key": ref.key}


def review_told(ledger: Ledger, review: Review) -> dict[str, Any]:
    """An open review. Values of fields are canonical JSON, as text."""
    told: dict[str, Any] = {
        "consumer": review.consumer,
        **ref_told(review.ref),
        "why": review.why.value,
        "concerns": concerned(ledger, review.ref),
        "candidates": [ref_told(one) for one in review.candidates],
    }
    known = ledger.servers.get(review.ref.server)
    if known is not None:
        told["source"] = server_json(known.seen)
    if review.change is not None:
        before = review.change.before
        told["id"] = str(review.change.after.id)
        told["approved"] = None if before is None else str(before.id)
        told["fields"] = [
            {
                "name": field.name,
                "classes": sorted(one.value for one in field.classes),
                "before": None if field.before is None else field.before.decode(errors="replace"),
                "after": None if field.after is None else field.after.decode(errors="replace"),
            }
            for field in review.change.fields
        ]
    return told


def status_told(ledger: Ledger) -> dict[str, Any]:
    """What each consumer sees, and why not more."""
    return {
        "servers": [
            {**known_json(known), "in_doubt": known.in_doubt} for known in ledger.servers.values()
        ],
        "failing": [
            {"server": server, "subject": subject.value, "why": why}
            for (server, subject), why in ledger.failing.items()
        ],
        "consumers": [_consumer_told(ledger, consumer) for consumer in sorted(ledger.profiles)],
    }


def _consumer_told(ledger: Ledger, consumer: str) -> dict[str, Any]:
    made = ledger.publications.get(consumer)
    items: list[dict[str, Any]] = []
    for ref in in_order(selected(ledger, ledger.profiles[consumer])):
        state, seen = standing(ledger, consumer, ref), ledger.version(ref)
        shown = isinstance(state, CapabilityId)
        if state is not None:
            now = None if seen is None or seen.definition is None else str(seen.definition.id)
            why = None if isinstance(state, CapabilityId) else state.value
            items.append({**ref_told(ref), "shown": shown, "id": now, "why": why})
    return {
        "consumer": consumer,
        "generation": 0 if made is None else made.generation,
        "items": items,
    }


def entry_told(entry: Entry) -> dict[str, Any]:
    """A line of the history."""
    told: dict[str, Any] = dict(entry_json(entry))
    for name, value in (("before", entry.before), ("after", entry.after)):
        if value is not None:
            told[name] = str(value)
    if entry.ref is not None:
        told["ref"] = ref_told(entry.ref)
    return told
