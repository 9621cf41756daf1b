"""Case files: what comes with Relist loads, and what is wrong in a file is named."""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from relist.check.expect import Answered, Requested
from relist_conformance import steps as s
from relist_conformance.script import CaseError, load_cases, parse_case

ALL = load_cases()


def raw(**changed: Any) -> dict[str, Any]:
    return {
        "id": "tools:made-up",
        "title": "A case made up",
        "text": "A client does what\nthis text says.",
        "rules": ["MADE-01", "MADE-02"],
        "source": [{"name": "A page", "url": "https://example.com/page"}],
        "strength": {"2025-11-25": "SHOULD", "2026-07-28": "MUST"},
        "severity": {"2025-11-25": "warn", "2026-07-28": "fail"},
        "anomaly": "lost notice",
        "profile": "mcp",
        "revisions": ["2025-11-25", "2026-07-28"],
        "transports": ["stdio"],
        "level": "full",
        "server": {"capabilities": {"tools": {}}, "tools": [["a@1"]]},
        "steps": [{"connect": None}, {"need": {"kind": "tools", "as": "list"}}],
        "expect": [{"answer": {"of": "list", "items": ["a@1"]}}],
        **changed,
    }


def text(**changed: Any) -> bytes:
    return yaml.safe_dump(raw(**changed)).encode()


def test_cases_come_with_relist_each_in_a_file_of_its_name() -> None:
    folder = files("relist_specs") / "cases"
    names = {path.name.removesuffix(".yaml") for path in folder.iterdir()}
    assert {case.id.replace(":", "-") for case in ALL} == names
    assert len(ALL) > 200


def test_what_the_manifests_of_the_sdks_name_has_the_cases_that_are_told() -> None:
    page = Path(__file__).parents[2] / "specs" / "sdk-manifests.md"
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 40
    assert all(re.fullmatch(r"[a-z-]+(:[a-z0-9-]+)+", name) for name, _ in rows)
    told = {case for _, cases in rows for case in re.findall(r"`([^`]+)`", cases)}
    assert told <= {case.id for case in ALL}


def test_each_rule_that_the_official_suite_sets_aside_has_a_case() -> None:
    page = Path(__file__).parents[2] / "specs" / "excluded-rules.md"
    by_id = {case.id: case for case in ALL}
    sections = page.read_text(encoding="utf-8").split("\n## ")[1:]
    for section, count in zip(sections, (13, 7), strict=True):
        rows = re.findall(r"^\| ([^|]+) \| ([A-Z ]+) \| ([^|]+) \| ", section, re.MULTILINE)
        assert len(rows) == count
        for rule, keyword, cases in rows:
            named = [by_id[name] for name in re.findall(r"`([^`]+)`", cases)]
            assert named, rule
            assert any(case.profile == "mcp" or "derived" in case.strength.values()
                       for case in named)  # fmt: skip
            if keyword.startswith("MUST") and keyword in named[0].strength.values():
                assert "fail" in named[0].severity.values()


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_severity_follows_strength_and_each_case_has_a_source(case: Any) -> None:
    for revision in case.revisions:
        must = case.strength[revision] in ("MUST", "MUST NOT")
        assert case.severity[revision] == ("fail" if must else "warn")
        assert case.rule[revision] in case.rules
    assert any(source.url for source in case.source)
    if case.profile == "mcp":
        assert not {"seed"} & set(case.strength.values())


def test_a_case_is_read_into_values() -> None:
    case = parse_case(text(), "made.yaml")
    assert case.text == "A client does what this text says."
    assert case.revisions == ("2025-11-25", "2026-07-28")
    assert case.transports == ("memory", "stdio")
    assert case.steps == (s.Connect(), s.Need(kind="tools", name="list"))
    assert case.expect == (
        Answered(
            rule={"2025-11-25": "MADE-01", "2026-07-28": "MADE-01"},
            severity={"2025-11-25": "warn", "2026-07-28": "fail"},
            of="list",
            one_of=(("a@1",),),
            anomaly="lost notice",
        ),
    )


def test_revisions_need_no_quotes() -> None:
    unquoted = text().replace(b"'2025-11-25'", b"2025-11-25")
    assert parse_case(unquoted, "made.yaml") == parse_case(text(), "made.yaml")


def test_an_expectation_may_name_its_own_rule_and_severity() -> None:
    expect = [
        {
            "requested": {
                "method": "tools/list",
                "rule": "MADE-02",
                "severity": {"2026-07-28": "warn"},
            }
        }
    ]
    found = parse_case(text(expect=expect), "made.yaml").expect[0]
    assert isinstance(found, Requested)
    assert found.rule["2026-07-28"] == "MADE-02"
    assert found.severity == {"2025-11-25": "warn", "2026-07-28": "warn"}


HOLD = {"answer": {"request": {"method": "tools/list"}, "hold": "one"}}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"colour": "red"}, "the case: .*'colour.* was unexpected"),
        ({"level": "all"}, "field 'level': '\"all\"'"),
        ({"id": "Tools"}, "field 'id': '\"Tools\"'"),
        ({"revisions": ["2024-11-05"]}, "field 'revisions/0': '\"2024-11-05\"'"),
        ({"steps": [{"need": {"kind": "tool"}}]}, "field 'steps/0/need/kind': '\"tool\"'"),
        ({"steps": [{"needs": {"kind": "tools"}}]}, "field 'steps/0': .*'needs.* was unexpected"),
        ({"steps": [{"idle": None, "stop": None}]}, "field 'steps/0'"),
        ({"steps": [{"when": {"revisions": ["2025-11-25"]}}]}, "field 'steps/0'"),
        (
            {"steps": [{"release": {"name": "one"}}, HOLD]},
            "'one' is held by no earlier",
        ),
        (
            {"steps": [{"answer": {"request": {"method": "initialize"}, "error": {"code": 1}}}]},
            "field 'steps/0/answer/error': .*message",
        ),
        (
            {"steps": [{"answer": {"request": {}, "hold": "one", "never": True}}]},
            "field 'steps/0/answer'",
        ),
        (
            {"steps": [{"answer": {"request": {"method": "GET"}, "never": True}}]},
            "field 'steps/0/answer/request': 'GET' needs transports: .http.",
        ),
        (
            {"steps": [{"answer": {"request": {}, "status": {"code": 503}}}]},
            "field 'steps/0/answer/status': '503' needs transports",
        ),
        ({"steps": [{"send": {"text": ":", "raw": True}}]}, "needs transports: .http."),
        ({"steps": [{"cut": {"what": "session"}}]}, "'session' needs transports: .http."),
        (
            {"steps": [{"answer": {"request": {}, "stream": {"begin": ": x"}}}]},
            "'steps/0/answer/stream': ': x' needs transports: .http.",
        ),
        (
            {"steps": [{"end_subscriptions": {"how": "closed"}}]},
            "'closed' needs transports: .http.",
        ),
        ({"steps": [{"excuse": {"request": {}, "why": "w", "since": "x"}}]}, "no earlier mark"),
        ({"steps": [{"turn": {"to": "x"}}]}, "'x' is no earlier connection"),
        ({"steps": [{"notify": {}}]}, "field 'steps/0/notify'"),
        ({"anomaly": "bad luck"}, "field 'anomaly': '\"bad luck\"'"),
        ({"expect": [{"outcome": {"of": "x", "one_of": ["error"]}}]}, "'x' is no answer"),
        ({"expect": [{"order": {"first": {}, "then": {}, "before": "x"}}]}, "'x' is no mark"),
        (
            {"steps": [{"idle": None, "when": {"given": "then"}}]},
            "field 'steps/0/when/given': 'then' is no earlier mark",
        ),
        (
            {"expect": [{"answer": {"of": "lst", "items": []}}]},
            "'expect/0/.*/of': 'lst' is no answer",
        ),
        ({"expect": [{"full_walk": {"kind": "tools", "since": "x"}}]}, "'x' is no mark"),
        ({"expect": [{"answer": {"of": "list"}}]}, "field 'expect/0/answer'"),
        ({"severity": {"2025-11-25": "warn"}}, "field 'severity': '2026-07-28' is missing here"),
        ({"server": {"capabilities": {}, "tools": [["a@x"]]}}, "'server/tools/0/0': '\"a@x\"'"),
    ],
)
def test_what_is_wrong_is_named_with_file_field_and_value(
    changed: dict[str, Any], told: str
) -> None:
    with pytest.raises(CaseError, match=f"made.yaml: .*{told}") as caught:
        parse_case(text(**changed), "made.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        b"id: [",
        b"\xff\xfe\x00",
        b"",
        b"- 1",
        b"a: &a [1]\nb: *a",
        b"[" * 5000,
        b"!!python/object/apply:os.getcwd []",
        b"x" * 300_000,
    ],
)
def test_what_is_no_case_at_all_is_one_line(data: bytes) -> None:
    with pytest.raises(CaseError, match=r"^made.yaml: ") as caught:
        parse_case(data, "made.yaml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_file_cannot_write_on_the_terminal() -> None:
    with pytest.raises(CaseError) as caught:
        parse_case(text(level="\x1b[2J[bold]"), "made.yaml")
    assert "\x1b" not in str(caught.value)


def test_two_cases_with_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_bytes(text())
    with pytest.raises(CaseError, match=r"^b.yaml: field 'id': 'tools:made-up' is taken"):
        load_cases(tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="nowhere"):
        load_cases(tmp_path / "nowhere")


def test_the_format_page_names_every_field_step_and_expectation() -> None:
    schema = json.loads((files("relist_specs") / "schemas" / "case.schema.json").read_bytes())
    page = (Path(__file__).parents[2] / "specs" / "case-format.md").read_text(encoding="utf-8")
    steps = schema["$defs"]["step"]["properties"].keys() - {"when"}
    expectations = schema["$defs"]["expectation"]["properties"].keys()
    for name in (*steps, *expectations):
        assert f"`{name}:" in page
    for name in schema["properties"]:
        assert f"`{name}`" in page


def test_a_key_that_is_there_twice_is_named() -> None:
    with pytest.raises(CaseError, match=r"^x\.yaml: not YAML: 'tools' is there twice$"):
        parse_case(
            text().replace(b"  tools:\n  - - a@1", b"  tools: []\n  tools:\n  - - a@1"), "x.yaml"
        )
