"""What is generated is up to date, and says what the law says."""

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from statemachine.io import load

from relist.check import pages, render
from relist.machine import Hit, read
from relist.values import Catalog
from repo.generate import COMMAND, ROOT, generated
from support.laws import CATALOG, LINK, LISTEN, POLICIES, Chart, check_guards, wander

BOTH = pytest.mark.parametrize(
    ("chart", "law"),
    list(zip(render.CHARTS, (CATALOG, LINK, LISTEN), strict=True)),
    ids=[chart.name for chart in render.CHARTS],
)


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_checked_in_documents_are_not_stale(path: Path) -> None:
    current = path.exists() and path.read_text() == generated()[path]
    assert current, f"{path.relative_to(ROOT)} is stale: run `{COMMAND}` and read the diff"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "specs" / "README.md").read_text()
    pages = {path.relative_to(ROOT / "specs").as_posix() for path in (ROOT / "specs").rglob("*.md")}
    assert {page for page in pages - {"README.md"} if f"({page})" not in index} == set()


@pytest.mark.parametrize("path", sorted((ROOT / "specs").rglob("*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)[)#]", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@BOTH
def test_the_first_phase_is_the_initial_one(chart: render.Chart, law: Chart) -> None:
    assert law.chart.initial_state.value is chart.phases[0]


@BOTH
def test_all_rows_are_told(chart: render.Chart, law: Chart) -> None:
    told = {
        (line.heard, phase, line.guard, line.to or phase.value, line.action)
        for line in render.lines(chart)
        for phase in line.phases
    }
    assert told == {
        (heard, phase, *names)
        for heard, row in law.table.items()
        for phase, cell in row.items()
        for names in cell.names
    }


@BOTH
def test_every_change_of_phase_is_in_the_diagram(chart: render.Chart, law: Chart) -> None:
    """Drawn from the phase or its group, or told in the note of the phase it leads to."""
    drawn = render.mermaid(chart).splitlines()
    assert not any(";" in text for text in drawn), "a semicolon ends a statement"
    for line in render.lines(chart):
        for phase in (phase for phase in line.phases if line.to):
            what = render.words(render.event_of(line.heard)), render.words(line.guard)
            groups = [name for name, members in chart.groups.items() if phase in members]
            starts = [f"    {source} --> {line.to}: " for source in (phase.value, *groups)]
            starts.append(f"    note left of {line.to}: ")
            found = [text for text in drawn if text.startswith(tuple(starts))]
            assert any(all(word in text for word in what) for text in found), (phase, line)


@pytest.mark.thorough
@BOTH
def test_scxml_runs_on_the_engine_as_the_table_does(
    chart: render.Chart, law: Chart, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library's own import of our SCXML goes where ``step`` goes, from every state met.

    Its guards are attributes of the model, set to what our guards say; its log names the action.
    """
    made: Any = load(render.scxml(chart), format="scxml")

    class Said:
        """The outcome of every guard of the chart, for the state and input at hand."""

    dice, reached, seen = Random(1), set[int](), set[tuple[Any, type]]()
    said: Any = Said()
    machine = made(model=said)
    for rules in POLICIES * 5:
        met = {state.phase: state for state in wander(law, rules, dice, reached)}
        for state in met.values():
            for heard in law.alphabet(state, 1_000, rules):
                row = check_guards(law, state, heard, rules)
                cell = law.table[type(heard)][state.phase]
                for one, (guard, _, _) in zip(cell.rows, cell.names, strict=True):
                    if guard:
                        setattr(said, guard, one is row)
                machine.current_state_value = state.phase.value
                machine.send(render.event_of(type(heard)))
                assert machine.current_state_value == row.target.value
                assert capsys.readouterr().out == f"do: {row.action.__name__!r}\n"
                seen.add((state.phase, type(heard)))
    assert len(seen) == law.declared + law.default, "cells were not visited"


@pytest.mark.thorough
def test_what_the_read_table_excludes_is_not_reached() -> None:
    dice, reached = Random(1), set[int]()
    met: list[Catalog] = []
    for rules in POLICIES * 20:
        met += wander(CATALOG, rules, dice, reached)
    assert {pages.excluded(catalog) for catalog in met} == {None}
    assert {read(c, now_ms).hit for c in met for now_ms in (0, 10**9)} == set(Hit)


def test_text_is_escaped_for_its_table() -> None:
    table = render.markdown_table(("a",), [("x | y\nz",)])
    assert table.splitlines()[2] == "| x \\| y z |"
