"""Writes the generated pages of ``specs/``: run this file after a change of the law."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from relist.check import pages, render

ROOT = Path(__file__).parents[2]
COMMAND = "python tests/repo/generate.py"


def generated() -> Mapping[Path, str]:
    """Every generated file with what it should hold."""
    made = {
        "state-machine.md": pages.state_machine_page(COMMAND),
        "read-table.md": pages.read_page(COMMAND),
        "invariants.md": pages.invariants_page(COMMAND, all_in(), named_in()),
    }
    made |= {f"charts/{chart.name}.scxml": render.scxml(chart) for chart in render.CHARTS}
    return {ROOT / "specs" / name: text for name, text in made.items()}


def all_in() -> Mapping[str, list[str]]:
    """By family of invariants: the tests that check all of it."""
    found: dict[str, list[str]] = {}
    for path, text in _tests():
        for about, (_, checks) in pages.CHECKS.items():
            module = next(iter(checks.values())).__module__.rpartition(".")[2]
            if re.search(rf"relist\.check\.{module} import|\b{module}\.broken\b", text):
                found.setdefault(about, []).append(path)
    return found


def named_in() -> Mapping[str, list[str]]:
    """By invariant: the tests that name it."""
    return {
        name: [path for path, text in _tests() if f'"{name}"' in text]
        for _, checks in pages.CHECKS.values()
        for name in checks
    }


def _tests() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text()


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
