"""Style that a linter does not know: sizes, and what must never be in the project."""

import ast
import re
import subprocess
from pathlib import Path
from typing import get_args

import attrs
import pytest

from relist import inputs

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for top in ("model", "adapters") for path in (ROOT / top).rglob("*.py"))
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
NEVER = (  # brackets, so that no pattern finds itself
    re.compile(r"(?<![\w.])/(?:root|home/\w+|work)/"),  # paths of a machine
    re.compile(r"index[-]url|find[-]links|[\"]resolved\""),  # registries by address
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=_name)
def test_modules_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = listed.stdout.splitlines()
    assert "uv.lock" not in tracked
    for name in tracked:
        path = ROOT / name
        text = path.read_text(errors="replace") if path.is_file() else ""
        for pattern in NEVER:
            found = pattern.search(text)
            assert found is None, f"{name}: {found and found[0]}"


def test_nothing_refers_to_decisions_that_are_not_here() -> None:
    """Records have four digits; the numbered decisions of the design are not in this repository."""
    for folder in ("model", "adapters", "tests", "specs"):
        for path in (ROOT / folder).rglob("*.py"):
            if path != Path(__file__):
                found = re.findall(r"(?i)\bdecisions? \d{1,3}\b|\bDESIGN\b", path.read_text())
                assert found == [], path


RECORDS = sorted((ROOT / "specs" / "decisions").glob("*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem[:4])
def test_a_record_points_at_code_that_is_there(record: Path) -> None:
    pointers = record.read_text().partition("Code: ")[2]
    assert pointers, "no code is named"
    for module, names in re.findall(r"`([\w/]+\.py)`(?:\s*\(([^)]*)\))?", pointers):
        folders = (ROOT / "model" / "relist", ROOT / "adapters")
        paths = [folder / module for folder in folders if (folder / module).exists()]
        assert paths, module
        text = paths[0].read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"(?m)^\s*(def |class |async def )?{name}\b", text), (module, name)


INPUT_CLASSES = {
    value
    for value in vars(inputs).values()
    if isinstance(value, type) and attrs.has(value) and value.__module__ == "relist.inputs"
}


def test_each_input_is_marked_as_whose_it_is() -> None:
    """Caller, peer, internal; the clock is nobody's."""
    groups = (inputs.CallerInput, inputs.PeerInput, inputs.InternalInput)
    marked = [one for group in groups for one in get_args(group)]
    assert len(marked) == len(set(marked))
    assert set(marked) | {inputs.TimePassed} == INPUT_CLASSES


def test_each_chart_fits_on_one_screen() -> None:
    page = (ROOT / "specs" / "state-machine.md").read_text()
    diagrams = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    assert len(diagrams) == 3
    for diagram in diagrams:
        lines = diagram.splitlines()
        assert len(lines) <= 30
        assert sum("-->" in line for line in lines) <= 25
