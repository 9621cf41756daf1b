"""Writes the generated pages of ``specs/``: run this file after a change of the law."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from relist.check import pages, render
from relist.check.trace import trace_schema
from relist_conformance.report.told import watch_schema

ROOT = Path(__file__).parents[2]
COMMAND = "python tests/repo/generate.py"


@cache
def generated() -> Mapping[Path, str]:
    """Every generated file with what it should hold."""
    from repo.defects_page import defects_page
    from repo.drift_page import drift_page
    from repo.requirements_page import requirements_page

    made = {
        "state-machine.md": pages.state_machine_page(COMMAND),
        "read-table.md": pages.read_page(COMMAND),
        "invariants.md": pages.invariants_page(COMMAND, all_in(), named_in()),
        "requirements.md": requirements_page(COMMAND),
        "drift.md": drift_page(COMMAND),
        "defects.md": defects_page(COMMAND),
    }
    made |= {f"charts/{chart.name}.scxml": render.scxml(chart) for chart in render.CHARTS}
    made |= {
        f"relist_specs/schemas/{name}.schema.json": json.dumps(schema, indent=1) + "\n"
        for name, schema in (("trace", trace_schema()), ("watch", watch_schema()))
    }
    return {ROOT / "specs" / name: text for name, text in made.items()}


# --- which tests check what -----------------------------------------------------------------------

SOURCES = {
    "relist.check": ROOT / "model" / "relist" / "check",
    "support": ROOT / "tests" / "support",
}


def all_in() -> Mapping[str, list[str]]:
    """By family of invariants: the tests that check all of it, by themselves or by their helpers.

    Whoever imports a family's mapping of checks, or its ``broken``, checks all of it.
    """
    found: dict[str, list[str]] = {}
    for path, text in tests():
        told = "\n".join((text, *helpers(text, set())))
        for about, (_, checks) in pages.CHECKS.items():
            family = next(iter(checks.values())).__module__.rpartition(".")[2]
            if re.search(rf"\b{family}\.broken\(|from relist\.check\.{family} import ", told):
                found.setdefault(about, []).append(path)
    return found


def named_in() -> Mapping[str, list[str]]:
    """By invariant: the tests, and what helps them, that name it."""
    named = [name for _, checks in pages.CHECKS.values() for name in checks]
    return {
        name: [path for path, text in (*tests(), *_of(SOURCES["support"])) if f'"{name}"' in text]
        for name in (*named, *pages.IN_THE_WORLD)
    }


def tests() -> Iterator[tuple[str, str]]:
    """All test files: path and text."""
    yield from (test for test in _of(ROOT / "tests") if "/test_" in test[0])


def _of(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), path.read_text()


def helpers(text: str, seen: set[Path]) -> Iterator[str]:
    """The texts of the helpers that this one imports, and of theirs; pages check nothing."""
    for package, module, names in re.findall(
        r"^from (relist\.check|support)(?:\.(\w+))? import (.+|\([^)]+\))$", text, re.MULTILINE
    ):
        for name in [module] if module else re.findall(r"\w+", names):
            path = SOURCES[package] / f"{name}.py"
            if name in ("pages", "render") or path in seen or not path.exists():
                continue
            seen.add(path)
            helper = path.read_text()
            yield helper
            yield from helpers(helper, seen)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))  # where pytest and the checkers look for ``repo``
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
