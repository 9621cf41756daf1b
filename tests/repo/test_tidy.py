"""Style that a linter does not know: sizes, and what must never be in the project."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

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
