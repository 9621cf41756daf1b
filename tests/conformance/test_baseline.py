"""Baselines: what is known does not fail a run; what is stale or has expired does."""

import json
import sys
from collections.abc import Sequence
from datetime import date
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from typer.testing import CliRunner

from conformance.made import MARKUP, made_case, made_result
from relist_conformance.baseline import Applied, apply, load_baseline, without_known
from relist_conformance.cli import app
from relist_conformance.errors import ConformanceError
from relist_conformance.runner import Result, exit_code

PAGE = Path(__file__).parents[2] / "specs" / "reports.md"
TODAY = date(2026, 11, 30)
CASES = ("tools:made-up", "tools:other")
KEY = ("tools:made-up", "stdio", "2025-11-25", "MADE-01")


def applied(tmp_path: Path, results: Sequence[Result], *entries: dict[str, object]) -> Applied:
    base = {"case": "tools:made-up", "rule": "MADE-01", "client": "made up", "reason": "known"}
    file = tmp_path / "baseline.yaml"
    file.write_text(yaml.safe_dump({"format": 1, "findings": [base | one for one in entries]}))
    return apply(load_baseline(file), "made up", results, CASES, TODAY)


def code(results: Sequence[Result], found: Applied) -> int:
    return exit_code(without_known(results, found.known))


def test_what_is_known_does_not_fail(tmp_path: Path) -> None:
    results = [made_result("fail"), made_result("pass", "http")]
    found = applied(tmp_path, results, {"reason": "waits for issue 7"})
    assert found == Applied({KEY: "waits for issue 7"})
    assert (exit_code(results), code(results, found)) == (1, 0)
    assert [one.word for one in without_known(results, found.known)] == ["pass", "pass"]


def test_only_what_is_known_is_excused(tmp_path: Path) -> None:
    results = [made_result("fail"), made_result("fail", "http")]
    found = applied(tmp_path, results, {"transports": ["stdio"]})
    assert set(found.known) == {KEY}
    assert code(results, found) == 1
    assert without_known(results, found.known)[1] == results[1]


def test_another_finding_of_the_same_cell_still_fails(tmp_path: Path) -> None:
    rule = dict.fromkeys(("2025-11-25", "2026-07-28"), "MADE-01")
    results = [made_result("fail", case=made_case(rule=rule))]
    found = applied(tmp_path, results, {"rule": "MADE-02"})
    assert found == Applied({}, ("stale: 'tools:made-up', rule 'MADE-02' is not found any more",))
    assert code(results, found) == 1


@pytest.mark.parametrize(
    ("word", "stale"),
    [
        ("pass", True),
        ("inconclusive", False),
        ("untestable", False),
        ("not_applicable", False),
        ("harness", False),
    ],
)
def test_an_entry_is_stale_once_a_run_shows_it(tmp_path: Path, word: str, stale: bool) -> None:
    found = applied(tmp_path, [made_result(word, reason="so")], {})  # type: ignore[arg-type]
    assert bool(found.faults) == stale


def test_what_was_not_played_is_not_stale(tmp_path: Path) -> None:
    results = [made_result("pass", "http")]
    assert applied(tmp_path, results, {"transports": ["stdio"]}) == Applied({})
    assert applied(tmp_path, results, {"revisions": ["2026-07-28"]}) == Applied({})
    assert applied(tmp_path, results, {"case": "tools:other"}) == Applied({})
    assert applied(tmp_path, results, {"client": "another"}) == Applied({})


def test_a_case_that_is_gone_is_stale(tmp_path: Path) -> None:
    found = applied(tmp_path, [made_result("pass")], {"case": "tools:gone\x1b"})
    assert found.faults == ("stale: there is no case 'tools:gone\\x1b'",)


@pytest.mark.parametrize(("day", "expired"), [("2026-11-29", True), ("2026-11-30", False)])
def test_an_entry_excuses_until_the_end_of_its_last_day(
    tmp_path: Path, day: str, expired: bool
) -> None:
    found = applied(tmp_path, [made_result("fail")], {"expires": day})
    assert bool(found.faults) == expired
    assert bool(found.known) != expired
    assert not expired or found.faults == (
        "expired on 2026-11-29: 'tools:made-up', rule 'MADE-01'",
    )


# --- the file -------------------------------------------------------------------------------------


ONE = "case: a, rule: b, client: c, reason: d"


def refused(tmp_path: Path, text: str) -> str:
    file = tmp_path / "b.yaml"
    file.write_text(text)
    with pytest.raises(ConformanceError) as caught:
        load_baseline(file)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"baseline '{file}'")
    return said.partition("': ")[2] or said.rpartition("'")[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not YAML: "),
        ("a: &x [*x]", "not YAML: "),
        ("[]", 'the file: [] is not of type "object"'),
        ("{format: 2, findings: []}", "format: 1 was expected"),
        ("{format: 1, findings: [{case: a}]}", 'findings/0: "rule" is a required property'),
        (
            f"{{format: 1, findings: [{{{ONE}, until: 1}}]}}",
            "findings/0: Additional properties are not allowed ('until' was unexpected)",
        ),
        (
            f"{{format: 1, findings: [{{{ONE}, expires: soon}}]}}",
            'findings/0/expires: "soon" does not match',
        ),
        (
            f"{{format: 1, findings: [{{{ONE}, expires: 2026-02-30}}]}}",
            "not YAML: ",
        ),
        (
            f"{{format: 1, findings: [{{{ONE}, expires: '2026-02-30'}}]}}",
            "expires: day is out of range for month",
        ),
        (f"x{'y' * 1024 * 1024}", " is longer than 1048576 bytes"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert refused(tmp_path, text).startswith(said)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConformanceError, match=r"^baseline 'no/such': No such file or directory$"):
        load_baseline(Path("no/such"))


def test_the_example_of_the_page_is_a_baseline(tmp_path: Path) -> None:
    schema = json.loads((files("relist_specs") / "schemas" / "baseline.schema.json").read_bytes())
    jsonschema_rs.meta.validate(schema)
    (example,) = PAGE.read_text("utf-8").split("```yaml\nformat: 1\n")[1:]
    file = tmp_path / "example.yaml"
    file.write_text("format: 1\n" + example.partition("```")[0])
    (first, second) = load_baseline(file)
    assert first.expires == date(2027, 3, 31)
    assert second.revisions == ("2026-07-28",)
    fields = schema["$defs"]["entry"]["properties"]
    assert all(f"| `{name}`" in PAGE.read_text("utf-8") for name in fields)


# --- the command ----------------------------------------------------------------------------------

NAIVE = ("--driver", f"{sys.executable} -m relist_conformance.drivers.naive")
ONE_CELL = ("--case", "paging:every-page", "--transport", "stdio", "--revision", "2026-07-28")


def test_a_run_is_held_against_it_and_reported(tmp_path: Path) -> None:
    """One run: a finding that is known, and an entry that is stale."""
    entry = {"case": "paging:every-page", "client": "naive client on mcp", "reason": MARKUP[:40]}
    baseline = tmp_path / "b.yaml"
    entries = [entry | {"rule": "DISC-10"}, entry | {"rule": "DISC-04"}]
    baseline.write_text(yaml.safe_dump({"format": 1, "findings": entries}))
    made = {name: tmp_path / f"r.{name}" for name in ("json", "junit", "sarif", "markdown", "html")}
    options = [part for name, path in made.items() for part in (f"--{name}", str(path))]
    args = ["check", *ONE_CELL, *NAIVE, "--strict", "--baseline", str(baseline), *options]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 1
    assert "known: paging:every-page, DISC-10 (2): </script>" in done.stdout
    stale = "stale: 'paging:every-page', rule 'DISC-04' is not found any more"
    assert f"baseline: {stale}\n1 warn\n" in done.stdout
    document = json.loads(made["json"].read_bytes())
    assert document["baseline_faults"] == [stale]
    assert {one["known"] for one in document["results"][0]["findings"]} == {MARKUP[:40]}
    assert str(tmp_path) not in made["json"].read_text()
    for name in ("junit", "sarif", "markdown", "html"):
        assert "stale" in made[name].read_text("utf-8"), name
    baseline.write_text(yaml.safe_dump({"format": 1, "findings": entries[:1]}))
    assert CliRunner().invoke(app, args[:-10]).exit_code == 0
