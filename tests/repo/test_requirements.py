"""Every requirement is decided in one way, and whatever cites one cites one that there is."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from attrs import frozen

from repo.requirements import (
    DATA,
    DISAGREEMENTS,
    KNOWN,
    READINGS,
    REQUIREMENTS,
    ROOT,
    ROWS,
    Row,
    cited_in,
    complaints,
    deciding,
    family,
    ids_in,
    judging,
    showing,
    treating,
    unjudged,
    unshown,
)

# What is agreed to be open for now; nothing else may be.
OPEN: tuple[str, ...] = ()

LOADED = {"requirements": REQUIREMENTS, "disagreements": DISAGREEMENTS}


def _validator(name: str) -> jsonschema_rs.Validator:
    schema = json.loads((DATA / "schemas" / f"{name}.schema.json").read_text())
    return jsonschema_rs.validator_for(schema)


@pytest.mark.parametrize("name", LOADED)
def test_the_data_is_of_its_schema(name: str) -> None:
    assert [error.message for error in _validator(name).iter_errors(LOADED[name])] == []


@pytest.mark.parametrize(
    "change",
    [
        {"strength": "OUGHT"},
        {"revisions": ["all"]},
        {"decision": "12"},
        {"excluded": {"because": "laziness", "why": "it is much work"}},
        {"excluded": {"because": "transport", "why": "nobody is named"}},
        {"excluded": {"because": "host", "why": "no issue of ours", "issue": 4}},
    ],
    ids=str,
)
def test_the_schema_refuses(change: Mapping[str, Any]) -> None:
    rows = [{**REQUIREMENTS["rows"][0], **change}]
    assert not _validator("requirements").is_valid({**REQUIREMENTS, "rows": rows})


def test_ids_are_listed_once_and_in_order() -> None:
    order = list(REQUIREMENTS["families"])
    ids = [row["id"] for row in REQUIREMENTS["rows"]]
    assert ids == sorted(set(ids), key=lambda rule: (order.index(family(rule)), rule))
    readings = [row["id"] for row in DISAGREEMENTS["disagreements"]]
    assert readings == sorted(set(readings))


def test_rows_take_sides_where_there_are_sides() -> None:
    taken = {reading for row in ROWS.values() for reading in row.get("readings", ())}
    assert taken == set(READINGS)


def test_sources_are_named() -> None:
    named = set(REQUIREMENTS["sources"])
    for rule, row in ROWS.items():
        for source in row["source"]:
            key = source.replace(":", " ").split()[0]
            known = key in named or key.startswith("SEP-") or key == "family"
            assert known, f"{rule}: {source}"


# --- both directions ------------------------------------------------------------------------------


def test_every_row_is_decided_in_one_way() -> None:
    assert list(complaints(ROWS, deciding(), treating())) == []


def test_every_row_that_the_wire_shows_is_judged_or_says_why_not() -> None:
    assert list(unjudged(ROWS, judging())) == []


def test_every_row_is_shown() -> None:
    assert list(unshown(ROWS, (*showing(), *judging()))) == []


def test_nothing_is_open_but_what_is_agreed() -> None:
    assert tuple(rule for rule, row in ROWS.items() if "open" in row) == OPEN


def _citing() -> Iterator[Path]:
    for top in ("model", "adapters", "tests", "specs"):
        for suffix in ("py", "md", "txt", "yaml"):
            yield from (ROOT / top).rglob(f"*.{suffix}")


def test_whatever_is_cited_exists() -> None:
    """``Note`` effects, case files and prose included."""
    own = Path(__file__)
    unknown = {
        path.relative_to(ROOT).as_posix(): sorted(set(ids_in(path.read_text())) - KNOWN)
        for path in _citing()
        if path != own
    }
    assert {path: rules for path, rules in unknown.items() if rules} == {}


def test_a_transport_that_is_named_is_there() -> None:
    """``by`` is the SDK, or a module of the live client."""
    for rule, row in ROWS.items():
        by = row.get("excluded", {}).get("by", "mcp")
        assert by == "mcp" or (ROOT / "adapters" / by).is_file(), rule


# --- the scan and its verdicts --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Rule: SUB-05, SUB-20 to 23.", ["SUB-05", "SUB-20", "SUB-21", "SUB-22", "SUB-23"]),
        ("SUB-05 to SUB-07 (D-14)", ["SUB-05", "SUB-06", "SUB-07", "D-14"]),
        ("LIFE-16 to\n    LIFE-20", ["LIFE-16", "LIFE-17", "LIFE-20"]),
        ("SUB-05 to LIFE-07", ["SUB-05", "LIFE-07"]),
        ("CAP-99, SHA-256, UTF-8, HIGH-CAP-01, ATOM-123", ["CAP-99", "ATOM-123"]),
    ],
)
def test_ids_are_found_in_text(text: str, found: list[str]) -> None:
    assert list(ids_in(text)) == found


CITING = '''
"""Of the module. Rule: CAP-01."""

# About what follows:
# one comment of two lines, CAP-02 to
# CAP-04.
@frozen
class Thing:
    """Rule: CAP-05."""

    one: int  # trailing, CAP-06
    two: int
    """Of the attribute. Rule: CAP-07."""

    @rule("CAP-08")
    def act(self) -> str:
        """Rule: CAP-09."""
        # inside, CAP-10
        return "CAP-11 is data"


TABLE = {
    "key": 1,  # CAP-12
}
"""Of the table. Rule: CAP-13."""
'''


def test_places_are_found_in_code(tmp_path: Path) -> None:
    path = tmp_path / "citing.py"
    path.write_text(CITING)
    found: dict[str, list[str]] = {}
    for rule, place in cited_in(path):
        found.setdefault(place.name, []).append(rule)
    assert {name: sorted(rules) for name, rules in found.items()} == {
        "": ["CAP-01"],
        "Thing": ["CAP-02", "CAP-03", "CAP-04", "CAP-05"],
        "Thing.one": ["CAP-06"],
        "Thing.two": ["CAP-07"],
        "Thing.act": ["CAP-08", "CAP-09", "CAP-10"],
        "TABLE": ["CAP-12", "CAP-13"],
    }


@frozen
class Flaw:
    """A row, what code and records say of it, and the complaint."""

    row: Row
    code: tuple[str, ...]
    treated: Mapping[str, tuple[str, ...]]
    complaint: str


EXCLUDED = {"excluded": {"because": "server", "why": "its duty"}}
FLAWS = {
    "not at all": Flaw({}, (), {}, "CAP-01: decided 0 times"),
    "stale exclusion": Flaw(
        EXCLUDED, ("CAP-01",), {}, "CAP-01: code cites it, so `excluded` is stale"
    ),
    "stale decision": Flaw(
        {"decision": "0001"},
        ("CAP-01",),
        {"CAP-01": ("0001",)},
        "CAP-01: code cites it, so `decision` is stale",
    ),
    "built meanwhile": Flaw(
        {"open": "the rest"}, ("CAP-01",), {}, "CAP-01: code cites it, so `open` is stale"
    ),
    "twice": Flaw({**EXCLUDED, "open": "the rest"}, (), {}, "CAP-01: decided 2 times"),
    "silent record": Flaw(
        {"decision": "0001"},
        (),
        {"CAP-02": ("0001",)},
        "CAP-01: decision 0001 does not speak of it",
    ),
}


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
def test_a_flaw_is_found(flaw: Flaw) -> None:
    assert list(complaints({"CAP-01": flaw.row}, flaw.code, flaw.treated)) == [flaw.complaint]


@pytest.mark.parametrize(
    ("rule", "row", "code"),
    [
        ("CAP-01", {}, ("CAP-01",)),
        ("CAP-01", EXCLUDED, ("CAP-02",)),
        ("CAP-01", {"decision": "0001"}, ()),
        ("AGG-01", {}, ()),
    ],
)
def test_what_is_decided_once_is_right(rule: str, row: Row, code: tuple[str, ...]) -> None:
    assert list(complaints({rule: row}, code, {"CAP-01": ("0001",)})) == []


def test_families_that_nobody_decides_here_say_nothing() -> None:
    (complaint,) = complaints({"AGG-01": EXCLUDED}, (), {})
    assert complaint == "AGG-01: nobody asks how it is decided"


WIRE = {"wire": "wire", "strength": "MUST"}


@pytest.mark.parametrize(
    ("row", "judged", "complaint"),
    [
        (WIRE, (), "no case judges it, and nothing says why"),
        ({**WIRE, "unplayed": "why"}, ("CAP-01",), "a case judges it, so `unplayed` is stale"),
        (
            {**WIRE, "wire": "driver", "unplayed": "why"},
            (),
            "nobody asks for a case, so `unplayed` says nothing",
        ),
        (
            {**WIRE, "strength": "MAY", "unplayed": "why"},
            (),
            "nobody asks for a case, so `unplayed` says nothing",
        ),
    ],
)
def test_what_is_judged_by_nobody_is_found(
    row: Row, judged: tuple[str, ...], complaint: str
) -> None:
    assert list(unjudged({"CAP-01": row}, judged)) == [f"CAP-01: {complaint}"]


@pytest.mark.parametrize(
    ("row", "judged"),
    [
        (WIRE, ("CAP-01",)),
        ({**WIRE, "unplayed": "why"}, ()),
        ({**WIRE, "wire": "driver"}, ()),
        ({**WIRE, "strength": "MAY"}, ()),
        ({**WIRE, "obliges": "server"}, ()),
        ({**WIRE, **EXCLUDED}, ()),
    ],
)
def test_what_is_judged_or_excused_is_right(row: Row, judged: tuple[str, ...]) -> None:
    assert list(unjudged({"CAP-01": row}, judged)) == []


def test_what_nothing_shows_is_found() -> None:
    rows: Mapping[str, Row] = {"CAP-01": {}, "CAP-02": {}, "CAP-03": EXCLUDED, "AGG-01": {}}
    assert list(unshown(rows, ("CAP-02",))) == ["CAP-01: nothing shows it"]
