"""The table of changes in ``specs/relist_specs/drift.yaml``, row by row, through a whole ledger."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pytest
import yaml

from relist.drift import inputs as i
from relist.drift.classify import classify
from relist.drift.ledger import Ledger, Record, standing
from relist.drift.receive import receive
from relist.drift.review import reviews
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    ChangeClass,
    Chosen,
    Definition,
    ExactSelection,
    FollowPolicy,
    Profile,
    Rule,
    ServerIdentity,
    Subject,
    Why,
)
from relist.policy import Risk
from relist_mcp.drift.definitions import definition_of
from relist_mcp.drift.schemas import relate
from repo.requirements import ROWS as REQUIRED

TABLE: Mapping[str, Any] = yaml.safe_load((files("relist_specs") / "drift.yaml").read_text())
ROWS = TABLE["rows"]
SERVER = ServerIdentity("server", "https://server.test/mcp")
KEYS = {"tool": "name", "prompt": "name", "resource": "uri", "template": "uriTemplate"}
FOLLOWS = FollowPolicy(
    {Risk.READ_ONLY: frozenset(ChangeClass(one) for one in TABLE["reader_follows"])}
)
PROFILES = {"strict": FollowPolicy(), "reader": FOLLOWS}


def made(subject: str, over: Mapping[str, Any]) -> Definition:
    """The base of the subject with these fields laid over it."""
    entry = {**TABLE["bases"][subject], **over}
    entry = {name: value for name, value in entry.items() if value is not None}
    key = str(entry.get(KEYS.get(subject, ""), ""))
    about = CapabilityRef(SERVER.id, Subject(subject), key)
    return definition_of(about, json.dumps(entry).encode())


def observed(ledger: Ledger, subject: str, *shown: Definition) -> tuple[Ledger, list[str]]:
    """The ledger after this inventory, and what was written down of it."""
    offered = {one.ref.key: one for one in shown}
    taken = i.InventoryTaken(SERVER, Subject(subject), offered, frozenset(), True, "me", 1)
    after, effects = receive(ledger, taken, relate)
    return after, [told.entry.what for told in effects if isinstance(told, Record)]


def becomes(
    subject: str, before: Definition, after: Definition | None, follow: FollowPolicy
) -> str:
    """What becomes of an approved definition that changes so."""
    wish = ExactSelection({before.ref: Chosen(Rule.ALLOW, Risk.READ_ONLY)})
    ledger, _ = receive(Ledger(), i.ProfileSet(Profile("c", (wish,), follow), "p", "", 0))
    ledger, _ = observed(ledger, subject, before)
    ledger, _ = receive(ledger, i.Approved("c", {before.ref: before.id}, "p", "", 0))
    ledger, told = observed(ledger, subject, *([] if after is None else [after]))
    stands = standing(ledger, "c", before.ref)
    if isinstance(stands, CapabilityId):
        return "follow" if "followed" in told else "quiet"
    assert ledger.publications["c"].manifest.items == {}
    if stands is Why.GONE:
        (review,) = reviews(ledger, relate)
        return "rebind" if review.candidates else "unresolved"
    assert stands is Why.CHANGED
    return "review"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_row(row: Mapping[str, Any]) -> None:
    subject = row["subject"]
    before = made(subject, row.get("before", {}))
    after = None if row["after"] is None else made(subject, row["after"])
    if after is not None and after.ref == before.ref:
        found = classify(before, after, relate).classes
        assert {one.value for one in found} == set(row["classes"])
    for name, follow in PROFILES.items():
        assert becomes(subject, before, after, follow) == row[name], name


def test_the_table_is_whole() -> None:
    assert len(ROWS) >= 60
    assert {row["subject"] for row in ROWS} == {subject.value for subject in Subject}
    shown = {one for row in ROWS for one in row["classes"]}
    assert shown == {one.value for one in ChangeClass} - {"meta"}  # no part of what is seen
    assert len({row["name"] for row in ROWS}) == len(ROWS)


def test_every_row_has_a_source() -> None:
    for row in ROWS:
        assert row["source"]
        assert set(row["source"]) <= set(REQUIRED), row["name"]
