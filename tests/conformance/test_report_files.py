"""Reports for other programs: the result file and its schema, JUnit, SARIF, Markdown."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import attrs
import jsonschema_rs
import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner

from conformance.made import (
    hostile_report,
    left_the_machine,
    made_case,
    made_hello,
    made_report,
    made_result,
)
from relist_conformance.cli import app
from relist_conformance.errors import ConformanceError
from relist_conformance.report.data import as_json, read_report
from relist_conformance.report.junit import as_junit
from relist_conformance.report.markdown import as_markdown
from relist_conformance.report.model import WORDS, Report
from relist_conformance.report.sarif import as_sarif

OTHER = made_case(
    id="tools:other", rules=["DISC-10"], rule=dict.fromkeys(("2025-11-25", "2026-07-28"), "DISC-10")
)
KNOWN = {("tools:made-up", "http", "2025-11-25", "MADE-01"): "waits for issue 7"}


def all_verdicts(**changed: Any) -> Report:
    """One cell of each verdict, and a failure that a baseline knows."""
    results = [made_result(word, "stdio", reason="so it is", case=OTHER) for word in WORDS]
    return made_report(*results, made_result("fail", "http"), known=KNOWN, **changed)


# --- the result file ------------------------------------------------------------------------------

SCHEMA = json.loads((files("relist_specs") / "schemas" / "result.schema.json").read_bytes())


@pytest.mark.parametrize("make", [all_verdicts, hostile_report, left_the_machine])
def test_the_result_is_of_its_schema_and_comes_back(
    make: Callable[[], Report], tmp_path: Path
) -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    report = make()
    text = as_json(report)
    assert text.isascii()
    (tmp_path / "r.json").write_text(text)
    assert as_json(read_report(tmp_path / "r.json")) == text
    assert read_report(tmp_path / "r.json").summary == report.summary


def test_the_schema_names_every_field() -> None:
    """So that nobody adds one and forgets the schema, and none is left that is gone."""
    document = json.loads(as_json(all_verdicts(faults=["stale"])))
    parts = {
        "rule": document["rules"]["DISC-10"],
        "case": document["cases"]["tools:made-up"],
        "result": document["results"][0],
        "finding": document["results"][1]["findings"][0],
        "event": document["results"][1]["history"][0],
        "deviation": json.loads(as_json(left_the_machine()))["results"][0]["deviation"],
        "driver": document["driver"],
    }
    assert set(SCHEMA["properties"]) == set(document)
    for name, part in parts.items():
        assert set(SCHEMA["$defs"][name]["properties"]) == set(part), name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(format=1), "format: 2 was expected"),
        (lambda d: d.pop("rules"), 'the document: "rules" is a required property'),
        (lambda d: d["results"][0].update(verdict="great"), 'results/0/verdict: "great"'),
        (lambda d: d["results"][0].update(case="x\x1b"), "nothing is told of the case 'x\\x1b'"),
        (lambda d: d.update(more=1), "the document: Additional properties"),
    ],
)
def test_what_is_no_result_is_one_line(
    change: Callable[[Any], Any], said: str, tmp_path: Path
) -> None:
    document = json.loads(as_json(all_verdicts()))
    change(document)
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(ConformanceError) as caught:
        read_report(tmp_path / "r.json")
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"result file '{tmp_path}/r.json'")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{'a': 1}"])
def test_what_is_no_json_is_one_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ConformanceError, match="is not JSON"):
        read_report(tmp_path / "r.json")


def test_results_of_before_deviations_can_be_read(tmp_path: Path) -> None:
    document = json.loads(as_json(left_the_machine()))
    del document["results"][0]["deviation"]
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert read_report(tmp_path / "r.json").results[0].deviation is None


def test_rules_come_with_their_text_and_page() -> None:
    rule = all_verdicts().rules["DISC-10"]
    assert rule.text == "One-page answers and many-page answers are both handled."
    page = "https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination"
    assert rule.url == f"{page}#implementation-guidelines"


# --- JUnit ----------------------------------------------------------------------------------------


def outcomes(report: Report) -> dict[str, str]:
    """What a reader of JUnit XML makes of each verdict."""
    document = JUnitXml.fromstring(as_junit([report]).encode())
    found: dict[str, str] = {}
    for suite in document:
        for case, result in zip(suite, report.results, strict=False):
            said = [type(one).__name__ for one in case.result]
            found[f"{result.case} {result.verdict}"] = ", ".join(said) or "passed"
    return found


def test_junit_says_what_each_verdict_is() -> None:
    expected = {
        "tools:other pass": "passed",
        "tools:other warn": "passed",
        "tools:other fail": "Failure",
        "tools:other inconclusive": "Error",
        "tools:other not_applicable": "Skipped",
        "tools:other untestable": "Skipped",
        "tools:other harness": "Error",
        "tools:made-up fail": "Skipped",
    }
    assert outcomes(all_verdicts()) == expected
    strict = {"tools:other warn": "Failure", "tools:other untestable": "Failure"}
    assert outcomes(all_verdicts(options={"strict": True})) == expected | strict


def test_what_is_known_excuses_nothing_else() -> None:
    """A failure is known, a warning of the same cell is not."""
    result = made_result("fail")
    other = attrs.evolve(result.observed.findings[0], rule="MADE-02", severity="warn")
    both = attrs.evolve(result.observed, findings=(*result.observed.findings, other))
    results = [attrs.evolve(result, observed=both)]
    known = {("tools:made-up", "stdio", "2025-11-25", "MADE-01"): "waits"}
    assert outcomes(made_report(*results)) == {"tools:made-up fail": "Failure"}
    assert outcomes(made_report(*results, known=known)) == {"tools:made-up fail": "passed"}
    strict = made_report(*results, known=known, options={"strict": True})
    assert outcomes(strict) == {"tools:made-up fail": "Failure"}
    assert [one.excused for one in strict.results] == [False]


def test_junit_counts_and_tells() -> None:
    text = as_junit([all_verdicts(faults=["stale: gone"])])
    root = ElementTree.fromstring(text)
    counts = {name: root.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "9", "failures": "2", "errors": "2", "skipped": "3"}
    (suite,) = root
    assert suite.attrib["name"] == "made up 1"
    assert suite[0].attrib["classname"] == "relist.tools:other"
    said = suite[1].findtext("system-out") or ""
    assert said.startswith("warn MADE-01")
    assert ": the client offered" in said
    assert "90 ms  client → [bold red]" in (suite[2].findtext("failure") or "")
    left = ElementTree.fromstring(as_junit([left_the_machine()])).findtext(".//failure") or ""
    assert "left what the reference machine allows:\n  #3: need was answered with [x@1]" in left
    assert "known: waits for issue 7" in ElementTree.tostring(suite[7]).decode()
    assert suite[8].attrib["name"] == "stale: gone"


# --- SARIF ----------------------------------------------------------------------------------------


def test_sarif_has_what_2_1_0_requires() -> None:
    document = json.loads(as_sarif([all_verdicts(), all_verdicts()]))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    assert len(document["runs"]) == 2
    run = document["runs"][0]
    driver = run["tool"]["driver"]
    assert driver["name"] == "relist"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert rules[result["ruleIndex"]] == result["ruleId"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"].startswith("relist/tools%3A")
        assert location["physicalLocation"]["region"]["startLine"] >= 1
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False  # a cell has the verdict harness
    assert [one["level"] for one in invocation["toolExecutionNotifications"]] == [
        "warning",
        "note",
        "error",
    ]
    for rule in driver["rules"]:
        if rule["id"] == "DISC-10":
            assert rule["shortDescription"]["text"].startswith("One-page answers")
            assert rule["helpUri"].startswith("https://modelcontextprotocol.io/")


def test_sarif_tells_findings_apart_and_suppresses_what_is_known() -> None:
    results = json.loads(as_sarif([all_verdicts()]))["runs"][0]["results"]
    assert [(one["level"], "suppressions" in one) for one in results] == [
        ("warning", False),
        ("error", False),
        ("error", True),
    ]
    assert results[2]["suppressions"] == [
        {"kind": "external", "justification": "waits for issue 7"}
    ]
    prints = {one["partialFingerprints"]["relistFinding/v1"] for one in results[1:]}
    assert len(prints) == 2
    newer = all_verdicts(hello=made_hello(version="2"))
    again = json.loads(as_sarif([newer]))["runs"][0]["results"]
    assert again[1]["partialFingerprints"] == results[1]["partialFingerprints"]


# --- Markdown -------------------------------------------------------------------------------------


def test_markdown_counts_and_tells_what_was_found() -> None:
    text = as_markdown([all_verdicts(faults=["stale: gone"])])
    assert (
        "| client | pass | warn | FAIL | inconclusive | n/a | untestable | HARNESS | known |"
        in text
    )
    assert "| made up 1 | 1 | 1 | 2 | 1 | 1 | 1 | 1 | 1 |" in text
    assert "- **baseline** stale&#58; gone" in text
    assert "| **FAIL** | tools&#58;other | stdio 2025-11-25 | MADE-01 | the client offered" in text
    assert "| known | tools&#58;made-up | http 2025-11-25 | MADE-01 |" in text
    assert "| **inconclusive** | tools&#58;other | stdio 2025-11-25 | | so it is |" in text


def test_markdown_tells_where_a_client_left_the_machine() -> None:
    text = as_markdown([left_the_machine()])
    row = "| tools&#58;made-up | stdio 2025-11-25 | &#35;3&#58; need was answered with &#91;x&#64;1"
    assert "| case | where | left what the reference machine allows | the machine then |" in text
    assert row in text
    assert "| link handshaking; tools initializing, no list to show; " in text
    assert "left what" not in as_markdown([all_verdicts()])


def test_what_passed_is_only_counted() -> None:
    assert "###" not in as_markdown([made_report(made_result("pass"))])


def test_a_long_summary_is_cut() -> None:
    many = [made_result("fail") for _ in range(300)]
    assert as_markdown([made_report(*many)]).endswith("and 100 more\n")


# --- a hostile client -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [as_junit, as_sarif, as_markdown])
def test_a_hostile_client_is_bounded_and_harmless(make: Callable[[Any], str]) -> None:
    text = make([hostile_report()])
    assert len(text.encode()) < 100_000
    assert all(char.isprintable() or char == "\n" for char in text)


def test_a_hostile_client_writes_no_markup() -> None:
    root = ElementTree.fromstring(as_junit([hostile_report()]))
    assert {one.tag for one in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out")
    }
    text = as_markdown([hostile_report()])
    assert not set(text) & set("<>`{}[]\\")
    assert all(line.count("|") in (0, 6, 5) for line in text.splitlines())


# --- the command ----------------------------------------------------------------------------------


def test_results_are_put_together(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    other = attrs.evolve(all_verdicts(), driver=made_hello(name="another"))
    for path, report in zip(paths, (all_verdicts(), other), strict=True):
        path.write_text(as_json(report))
    wanted = {name: tmp_path / f"all.{name}" for name in ("junit", "sarif", "markdown", "html")}
    options = [part for name, path in wanted.items() for part in (f"--{name}", str(path))]
    done = CliRunner().invoke(app, ["report", *map(str, paths), *options])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1].startswith("another 1: 1 pass 1 warn 2 FAIL")
    for path in wanted.values():
        text = path.read_text("utf-8")
        assert "made up 1" in text.replace("%20", " ")
        assert "another 1" in text.replace("%20", " ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing to write: give --junit, --sarif, --markdown or --html"),
        (("--html", "no/such/folder/x"), "HTML file 'no/such/folder/x': No such file"),
        (("--sarif", "x"), "result file 'no.json': No such file or directory"),
    ],
)
def test_bad_input_is_one_line(
    options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["report", "no.json", *options])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"relist: {said}")
    assert done.stderr.count("\n") == 1
