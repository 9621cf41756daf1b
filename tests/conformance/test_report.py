"""Reports: what they say, that a hostile peer cannot write them, and that they do not vary."""

import io
import json

import attrs
import pytest
from rich.console import Console

from conformance.made import HOSTILE, left_result, made_case, made_report, made_result
from relist_conformance.errors import ConformanceError
from relist_conformance.report.data import as_json
from relist_conformance.report.explain import print_explanation, print_list
from relist_conformance.report.table import print_report
from relist_conformance.runner import Result


def printed(*results: Result, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=110, force_terminal=terminal, markup=False, highlight=False, emoji=False
    )
    print_report(console, results, f"{HOSTILE} 1, profile relist")
    return file.getvalue()


def test_verdicts_are_words_in_a_table() -> None:
    text = printed(
        made_result("pass"),
        made_result("fail", "http", "2026-07-28"),
        made_result("untestable", case=made_case(id="tools:other"), reason="the driver is small"),
    )
    rows = [line for line in text.splitlines() if line.startswith("│ tools:")]
    assert [row.replace(" ", "") for row in rows] == [
        "│tools:made-up│pass│FAIL│",
        "│tools:other│untestable│-│",
    ]
    assert text.endswith("1 pass, 1 FAIL, 1 untestable\n")


def test_columns_stand_in_one_order_whatever_the_first_case_has() -> None:
    results = [
        made_result("pass", *where)
        for where in (
            ("http", "2026-07-28"),
            ("stdio", "2026-07-28"),
            ("http", "2025-11-25"),
            ("stdio", "2025-11-25"),
        )
    ]
    heads = [line.split() for line in printed(*results).splitlines() if line.startswith("┃")]
    assert heads[0][2::2] == ["stdio", "stdio", "http", "http"]
    assert heads[1][3::2] == ["2025-11-25", "2026-07-28"] * 2


def test_an_id_in_the_list_is_never_cut() -> None:
    file, name = io.StringIO(), "call:" + "long-" * 9 + "name"
    print_list(Console(file=file, width=110), [made_case(id=name)])
    rows = [line.split("│")[1].strip() for line in file.getvalue().splitlines() if "│" in line]
    assert "".join(rows) == name


def test_what_did_not_pass_shows_rule_strength_source_finding_and_witness() -> None:
    text = printed(made_result("warn"), made_result("pass", "http"))
    for wanted in (
        "A client does what this text says.",
        "SHOULD in 2025-11-25, MUST in 2026-07-28; a rule of MCP; rules MADE-01",
        "  Source: A page\n    https://example.com/page#part\n",
        "warn on stdio 2025-11-25: MADE-01 [lost notice]: the client offered",
        "90 ms  client → [bold red]",
    ):
        assert wanted in text


def test_what_passes_is_not_explained() -> None:
    assert "A client does" not in printed(made_result("pass"))


def test_where_a_client_left_the_machine_is_told() -> None:
    result = left_result()
    text = printed(result, attrs.evolve(result, cell=attrs.evolve(result.cell, transport="http")))
    assert text.count("left the machine on stdio 2025-11-25, http 2025-11-25:") == 1
    assert "      #3: need was answered with [x@1]" in text
    assert "      the machine: link " in text
    assert "left the machine" not in printed(made_result("fail"))


def test_equal_findings_are_told_once() -> None:
    text = printed(made_result("fail"), made_result("fail", "http"))
    assert "FAIL everywhere: MADE-01 [lost notice]" in text
    assert text.count("the client offered") == 1


def test_lines_end_in_text_and_addresses_are_whole() -> None:
    url = "https://example.com/" + "very/" * 30
    case = made_case(source=[{"name": "A page", "url": url}], text="word " * 60)
    lines = printed(made_result("fail", case=case)).splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert f"    {url}" in lines
    assert all(len(line) <= 110 or url in line for line in lines)


def test_a_reason_is_given_where_nothing_was_judged() -> None:
    text = printed(made_result("not_applicable", reason=f"no stream {HOSTILE}"))
    assert "n/a on stdio 2025-11-25: no stream [bold red]\\x1b[2J\\u202e\\nsecond line" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_a_peer_cannot_write_on_the_terminal(terminal: bool) -> None:
    case = made_case(title=HOSTILE, text=HOSTILE)
    text = printed(made_result("fail", case=case), terminal=terminal)
    assert "\x1b[2J" not in text
    assert "\u202e" not in text
    assert "[bold red]" in text  # shown, not obeyed
    assert "\x1b[" not in text or terminal


def test_json_holds_all_and_round_trips() -> None:
    document = json.loads(as_json(made_report(made_result("pass"), made_result("fail", "http"))))
    assert document["summary"]["fail"] == 1
    assert document["options"] == {"jobs": 4, "strict": False}
    assert document["timing"]["driver_start_ms"] == 250
    assert document["timing"]["client_start_ms"]["sum"] == 80
    passed, failed = document["results"]
    assert passed["verdict"] == "pass"
    assert passed["history"] == []
    assert failed["findings"][0]["rule"] == "MADE-01"
    assert failed["history"][2]["message"]["method"] == HOSTILE
    assert document["cases"]["tools:made-up"]["judged"]["2025-11-25"] == ["MADE-01"]
    assert document["rules"] == {}  # nobody knows MADE-01


def test_json_of_a_run_that_never_connected() -> None:
    result = made_result("harness", reason="no channel")
    bare = attrs.evolve(result, observed=attrs.evolve(result.observed, history=(), lag_ms=None))
    document = json.loads(as_json(made_report(bare)))
    assert document["results"][0]["client_start_ms"] is None
    assert document["results"][0]["reason"] == "no channel"


def test_cases_are_listed_and_explained_by_case_or_rule() -> None:
    cases = [
        made_case(),
        made_case(id="tools:other", rules=["MADE-01", "MADE-02"], revisions=["2026-07-28"]),
    ]
    file = io.StringIO()
    console = Console(file=file, width=110)
    print_list(console, cases)
    assert "tools:other" in file.getvalue()
    print_explanation(console, cases, "MADE-02")
    assert "Breaking it: fail in 2026-07-28. Driver level: full." in file.getvalue()
    print_explanation(console, cases, "tools:made-up")
    assert "SHOULD in 2025-11-25, MUST in 2026-07-28" in file.getvalue()
    with pytest.raises(ConformanceError, match="no case and no rule is called 'MADE-03'"):
        print_explanation(console, cases, "MADE-03")
