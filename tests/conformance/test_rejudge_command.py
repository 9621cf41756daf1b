"""``relist replay`` of a result of ``relist check --json``: plays judged anew, without a client."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import relist
from conformance.made import made_hello, made_report
from conformance.story import Story
from relist.check.judge import judge
from relist_conformance.cli import app
from relist_conformance.report.data import as_json
from relist_conformance.runner import Cell, Observed, Word
from relist_conformance.runner import Result as Play
from relist_conformance.script import Case, load_cases

CASES = {case.id: case for case in load_cases()}
EVERY_PAGE = CASES["paging:every-page"]
LEGACY, MODERN = "2025-11-25", "2026-07-28"


def first_page_only() -> Story:
    """What a client does that takes the first page for the list."""
    story = Story().legacy({"tools": {}}).ask(**{"as": "offered"})
    story.lists("a@1", following="two")
    ok = {"items": [{"name": "a", "description": "a@1"}], "state": "fresh"}
    answer = {"op": "need", "kind": "tools", "as": "offered"}
    return story.add("answer", ask=story.asks, **answer, ok=ok).fence()


def play(
    story: Story, case: Case = EVERY_PAGE, word: Word | None = None, transport: str = "stdio"
) -> Play:
    """A play that came to this, judged as it is judged now, or so it says."""
    verdict = judge(case.expect, story.events, LEGACY)
    observed = Observed(
        word or verdict.word, "; ".join(verdict.unjudged), verdict.findings, tuple(story.events), 1
    )
    return Play(Cell(case, transport, LEGACY), observed, 1, 20.0)


def untested(word: Word, reason: str) -> Play:
    return Play(Cell(EVERY_PAGE, "http", LEGACY), Observed(word, reason), 0, 0.0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "r.json"
    passed = play(first_page_only(), word="pass", transport="http")
    plays = (play(first_page_only()), passed, untested("untestable", "no http"))
    path.write_text(as_json(made_report(*plays, hello=made_hello(name="naive"))))
    return path


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["replay", *map(str, args)])


def changed(path: Path, change: Callable[[Any], Any]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


TOLD = f"naive 1, as relist {relist.__version__} recorded it\n"
LEFT = (
    "    left the machine at #8: need was answered with [a@1], which is no more than the first page"
    " of a longer list\n"
    "    the machine: link live at 2025-11-25; tools stale, no list to show; tools/list may be sent"
    " without a cursor, or with the cursor 'two'\n"
)
MISSING = "not judged anew, because the file holds no history of them: pass 1, untestable 1\n"


def test_a_result_is_judged_anew(file: Path) -> None:
    done = run(file)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        TOLD
        + "paging:every-page on stdio 2025-11-25: warn\n"
        + LEFT
        + "\n"
        + MISSING
        + "judged anew: 1, all as recorded\n"
    )


def test_a_verdict_that_differs(file: Path) -> None:
    """As when it was recorded by a version that had another judge."""
    changed(file, lambda d: d["results"][0].update(verdict="fail"))
    done = run(file)
    assert done.exit_code == 1
    assert "paging:every-page on stdio 2025-11-25: FAIL, now warn\n" in done.stdout
    assert done.stdout.endswith("verdicts that differ: 1; others with findings that differ: 0\n")


def test_a_finding_that_differs_counts_when_strict(file: Path) -> None:
    changed(file, lambda d: d["results"][0]["findings"][0].update(text="it was \x1b[1m so"))
    done = run(file)
    assert done.exit_code == 0
    assert "    no more: DISC-10: it was \\x1b[1m so\n    new: DISC-10: " in done.stdout
    assert done.stdout.endswith(
        "judged anew: 1; verdicts that differ: 0; others with findings that differ: 1\n"
    )
    assert run(file, "--strict").exit_code == 1


def test_the_history_decides_and_not_what_was_written_down(file: Path) -> None:
    def complete(document: Any) -> None:
        """Then the client had read the second page as well."""
        story = Story().legacy({"tools": {}}).ask(**{"as": "offered"})
        story.lists("a@1", following="two").asked("tools/list", cursor="two")
        story.page("b@1", following="three").asked("tools/list", cursor="three").page("c@1")
        items = [{"name": name, "description": f"{name}@1"} for name in "abc"]
        answer = {"op": "need", "kind": "tools", "as": "offered", "ok": {"items": items}}
        story.add("answer", ask=story.asks, **answer).fence()
        report = made_report(play(story, word="warn"))
        document["results"][0]["history"] = json.loads(as_json(report))["results"][0]["history"]

    changed(file, complete)
    done = run(file)
    assert done.exit_code == 1
    assert "paging:every-page on stdio 2025-11-25: warn, now pass\n" in done.stdout
    assert "    no more: DISC-10: " in done.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--case", "paging:*"), "paging:every-page on stdio"),
        (("--transport", "stdio"), "paging:every-page on stdio"),
        (("--revision", LEGACY), "paging:every-page on stdio"),
        (("--transport", "http"), "nothing was judged anew"),
    ],
)
def test_some_plays_can_be_chosen(file: Path, options: tuple[str, ...], said: str) -> None:
    done = run(file, *options)
    assert done.exit_code == 0
    assert said in done.stdout


@pytest.mark.parametrize(
    "options", [("--case", "no:*"), ("--revision", MODERN), ("--transport", "\x1b")]
)
def test_no_play_is_left(file: Path, options: tuple[str, ...]) -> None:
    done = run(file, *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"relist: result file '{file}' holds no such play\n"


def test_a_case_that_is_not_known_any_more(file: Path) -> None:
    def rename(document: Any) -> None:
        document["cases"]["no:more"] = document["cases"]["paging:every-page"] | {"id": "no:more"}
        document["results"][0]["case"] = "no:more"

    changed(file, rename)
    done = run(file)
    assert done.exit_code == 0
    assert (
        "no:more on stdio 2025-11-25: warn, not judged anew (this version has no such case)\n"
    ) in done.stdout
    assert run(file, "--strict").exit_code == 1


def test_a_history_of_which_little_was_kept(file: Path) -> None:
    def shorten(document: Any) -> None:
        history = document["results"][0]["history"]
        note = history[-1] | {"kind": "note", "data": {"left_out": len(history)}}
        document["results"][0]["history"] = [note]

    changed(file, shorten)
    done = run(file)
    assert done.exit_code == 0
    assert "warn, not judged anew (of its history only what shows the findings" in done.stdout
    assert run(file, "--strict").exit_code == 1


def test_what_the_judge_could_not_tell_is_judged_anew_and_nothing_else(tmp_path: Path) -> None:
    unfenced = Story().legacy({"tools": {}}).lists("a@1", following="two")
    path = tmp_path / "r.json"
    path.write_text(as_json(made_report(play(unfenced))))
    assert json.loads(path.read_text())["results"][0]["verdict"] == "inconclusive"
    assert "stdio 2025-11-25: inconclusive\n" in run(path).stdout
    changed(path, lambda d: d["results"][0].update(reason="the client did not send a request"))
    assert "not judged anew (the client did not send a request)" in run(path).stdout


def test_a_result_in_one_line_is_one_too(file: Path) -> None:
    changed(file, lambda _: None)
    assert file.read_text().count("\n") == 0
    assert run(file).stdout.startswith(TOLD)


def test_results_written_before_deviations_were_looked_for(file: Path) -> None:
    changed(file, lambda d: [one.pop("deviation") for one in d["results"]])
    assert LEFT in run(file).stdout


# --- what is no result ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{\n", "result file '{}' is not JSON"),
        ("{\n}", "result file '{}': the document: \"format\" is a required property"),
        ('{"results": []}', "result file '{}': the document: \"format\" is a required property"),
        ("[" * 100_000, "trace file '{}', line 1: is nested too deeply"),
        ("\n", "trace file '{}', line 1: is not JSON"),
    ],
)
def test_what_is_neither_is_one_line(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    done = run(path)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"relist: {complaint.format(path)}")
    assert len(line) < 600


def test_a_damaged_result_is_named(file: Path) -> None:
    changed(file, lambda d: d["results"][0]["history"][3].update(kind="\x1b[2J"))
    done = run(file)
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert "results/0/history/3/kind" in line
    assert line.isprintable()


def test_options_of_results_are_not_for_traces(tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_text('{"format":1}\n')
    done = run(path, "--case", "paging:*")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "are for results" in done.stderr
