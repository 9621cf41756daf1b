"""Mutants of the law: at least 95 % are killed, the share only rises, each survivor is explained.

Takes twenty minutes of one core: ``pytest -m strength tests/strength``. With ``--rewrite`` the
figures are written; a share that falls is refused all the same.
"""

from pathlib import Path

import pytest

from strength.figures import Outcomes, compare
from strength.sources import MODULES, run
from strength.tables import CHARTS, grounds, judge, mutants

pytestmark = pytest.mark.strength


def test_mutants_of_the_tables(request: pytest.FixtureRequest) -> None:
    met: dict[str, Outcomes] = {}
    for name, chart in CHARTS.items():
        known = grounds(chart)
        met[name] = [
            ((name, one.row, one.what), judge(chart, one, known) not in {"survived", "unfinished"})
            for one in mutants(chart)
        ]
    compare("tables", met, rewrite=request.config.getoption("--rewrite"))


def test_mutants_of_the_sources(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    results = run(tmp_path)
    met: dict[str, Outcomes] = {
        module: [
            ((one.module, one.function, one.was, one.now), one.verdict != "survived")
            for one in results
            if one.module == module
        ]
        for module in MODULES
    }
    compare("sources", met, rewrite=request.config.getoption("--rewrite"))
