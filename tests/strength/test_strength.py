"""Mutants of the law: at least 95 % are killed, the share only rises, each survivor is explained.

Takes most of an hour: ``pytest -m strength tests/strength``. With ``--rewrite`` the figures are
written; a share that falls is refused all the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from strength import figures
from strength.figures import Figure, Names
from strength.sources import MODULES, run
from strength.tables import CHARTS, grounds, judge, mutants

pytestmark = pytest.mark.strength


def test_mutants_of_the_tables(request: pytest.FixtureRequest) -> None:
    met: dict[str, list[tuple[Names, bool]]] = {}
    for name, chart in CHARTS.items():
        known = grounds(chart)
        met[name] = [
            ((name, one.row, one.what), judge(chart, one, known) not in {"survived", "unfinished"})
            for one in mutants(chart)
        ]
    _compare("tables", met, request)


def test_mutants_of_the_sources(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    results = run(tmp_path)
    met = {
        module: [
            ((one.module, one.function, one.was, one.now), one.verdict != "survived")
            for one in results
            if one.module == module
        ]
        for module in MODULES
    }
    _compare("sources", met, request)


def _compare(
    kind: str, met: Mapping[str, Sequence[tuple[Names, bool]]], request: pytest.FixtureRequest
) -> None:
    """What was met must be what is checked in, or better."""
    found = {
        name: Figure(figures.digest_of(kind, name), len(all_), sum(killed for _, killed in all_))
        for name, all_ in met.items()
    }
    before = figures.load().get(kind, {})
    assert figures.total(found).percent >= figures.total(before).percent, "the share fell"
    if request.config.getoption("--rewrite"):
        figures.save(kind, found)
        before = found
    survivors = [names for all_ in met.values() for names, killed in all_ if not killed]
    known = [names for names, _ in figures.listed(kind)]
    _explained(kind, survivors, known)
    assert found == before, "--rewrite writes the figures anew"


def _explained(kind: str, survivors: Iterable[Names], known: Iterable[Names]) -> None:
    met, told = Counter(survivors), Counter(known)
    entries = figures.as_entries(kind, sorted((met - told).elements()))
    assert not entries, f"kill these, or say in survivors.toml why not:\n{entries}"
    assert not told - met, f"these are killed now, or are no more: {sorted(told - met)}"
