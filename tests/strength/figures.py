"""What is checked in: how many mutants are killed, and each that is not with the reason why.

``figures.json`` is written by the strength run, ``survivors.toml`` by hand.
"""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from strength.sources import PACKAGE
from strength.tables import CHARTS

HERE = Path(__file__).parent
FIGURES = HERE / "figures.json"
SURVIVORS = HERE / "survivors.toml"
LEAST_PERCENT = 95


class Figure(NamedTuple):
    """What became of the mutants of one module or chart, and of which state of it."""

    digest: str
    mutants: int
    killed: int

    @property
    def percent(self) -> float:
        """The share that is killed, rounded down to a tenth."""
        return self.killed * 1000 // max(self.mutants, 1) / 10


Figures = Mapping[str, Mapping[str, Figure]]
"""By kind ("tables", "sources") and name of a chart or module."""

Names = tuple[str, ...]
"""A survivor: module, function, what was written and is now; or chart, row, what is wrong."""


def load() -> Figures:
    """The figures that are checked in."""
    told: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text())
    return {
        kind: {name: Figure(**figure) for name, figure in figures.items()}
        for kind, figures in told.items()
    }


def save(kind: str, figures: Mapping[str, Figure]) -> None:
    """Replace the figures of this kind."""
    told = {**load(), kind: figures}
    text = {
        one: {name: figure._asdict() for name, figure in found.items()}
        for one, found in told.items()
    }
    FIGURES.write_text(json.dumps(text, indent=1) + "\n")


def total(figures: Mapping[str, Figure]) -> Figure:
    """All of a kind together."""
    found = figures.values()
    return Figure("", sum(one.mutants for one in found), sum(one.killed for one in found))


FIELDS = {"sources": ("module", "function", "was", "now"), "tables": ("chart", "row", "what")}


def listed(kind: str) -> list[tuple[Names, str]]:
    """The survivors of this kind that are known, with why each is no defect of the tests."""
    told: list[dict[str, str]] = tomllib.loads(SURVIVORS.read_text())[kind]
    for entry in told:
        assert set(entry) == {*FIELDS[kind], "why"}, entry
    return [(tuple(entry[field] for field in FIELDS[kind]), entry["why"]) for entry in told]


def as_entries(kind: str, survivors: Iterable[Names]) -> str:
    """Survivors as they are listed, but for the reason, which nobody can write but you."""
    return "".join(
        "\n".join((f"\n[[{kind}]]", *map(_line, FIELDS[kind], names), 'why = ""\n'))
        for names in survivors
    )


def _line(field: str, name: str) -> str:
    return f"{field} = {json.dumps(name)}"


def digest_of(kind: str, name: str) -> str:
    """Which state of a module or chart a figure is about."""
    if kind == "sources":
        text = (PACKAGE / name).read_bytes()
    else:
        table = CHARTS[name].table
        rows = sorted(
            (heard.__name__, phase.value, cell.names)
            for heard, cells in table.items()
            for phase, cell in cells.items()
        )
        text = repr(rows).encode()
    return sha256(text).hexdigest()[:16]


Outcomes = Sequence[tuple[Names, bool]]
"""Every mutant of one chart or module, and whether it is killed."""


def compare(kind: str, met: Mapping[str, Outcomes], *, rewrite: bool) -> None:
    """What was met must be what is checked in. Raises AssertionError if not.

    With ``rewrite`` the figures are replaced, unless less is killed than before.
    """
    found = {
        name: Figure(digest_of(kind, name), len(outcomes), sum(killed for _, killed in outcomes))
        for name, outcomes in met.items()
    }
    before = load().get(kind, {})
    assert total(found).percent >= total(before).percent, "the share fell"
    if rewrite:
        save(kind, found)
    survived = [names for outcomes in met.values() for names, killed in outcomes if not killed]
    now, known = Counter(survived), Counter(names for names, _ in listed(kind))
    new = as_entries(kind, sorted((now - known).elements()))
    assert not new, f"kill these, or say in {SURVIVORS.name} why not:\n{new}"
    assert not known - now, f"these are killed now, or are no more: {sorted(known - now)}"
    assert rewrite or found == before, "--rewrite writes the figures anew"
