"""Linter, formatter and type checkers are clean, and see what they are there to see."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = {
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy",),
    "pyright": ("pyright", "--pythonpath", sys.executable),
}


def _run(command: tuple[str, ...], folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", TOOLS)
def test_the_checkout_is_clean(name: str) -> None:
    result = _run(TOOLS[name])
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("line", ["import time", "from asyncio import sleep", "import mcp"])
def test_the_linter_keeps_the_world_out_of_the_core(line: str, tmp_path: Path) -> None:
    """The same line beside an adapter is nobody's business."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("model/relist", "adapters/relist_mcp"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "seeded.py").write_text(f'"""Seeded."""\n\n{line}  # noqa: F401\n')
    shutil.copy(ROOT / "model" / "ruff.toml", tmp_path / "model")
    assert "TID251" in _run(("ruff", "check", "model"), tmp_path).stdout
    assert "TID251" not in _run(("ruff", "check", "adapters"), tmp_path).stdout


RIGHT = """from relist import Hit, Kind, Policy, Relist, Wire

core = Relist(Wire.PIPE, Policy(seed=b"x"))
hit: Hit = core.read(Kind.TOOLS, 0).hit
"""


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_checkers_see_the_installed_types(checker: str, tmp_path: Path) -> None:
    """From an unrelated folder, through the (editable) install: py.typed works."""
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text(RIGHT.replace("hit: Hit", "hit: int"))
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    options = ("--strict",) if checker == "mypy" else ("--pythonpath", sys.executable)
    good = _run((checker, *options, str(right)), tmp_path)
    assert good.returncode == 0, good.stdout + good.stderr
    assert _run((checker, *options, str(wrong)), tmp_path).returncode == 1
