"""Everything that can happen in the small worlds, looked at: the promise holds in each environment.

The numbers are pinned. When the law changes they change with it; a change that nobody expected is
worth a look: the failing test shows the new ones.
"""

import pytest

from relist.check.explore import Report, explore
from relist.check.numbered import declared_rows
from relist.check.setting import Setting
from relist.check.world import World
from relist.values import Doubt, Phase
from support.worlds import ENVIRONMENTS, FEATURES, NIGHTLY

PINNED: dict[str, tuple[int, int, int]] = {  # scenes, moves, depth
    "ordered atomic lossless": (14733, 78104, 40),
    "ordered atomic lossy": (26193, 169332, 40),
    "ordered delayed lossless": (46429, 270136, 45),
    "ordered delayed lossy": (50977, 354264, 45),
    "unordered atomic lossless": (12653, 74694, 38),
    "unordered atomic lossy": (14097, 92388, 38),
    "unordered delayed lossless": (24009, 156176, 42),
    "unordered delayed lossy": (25197, 179400, 42),
    "failures": (37314, 201812, 38),
    "authorization": (17878, 87927, 30),
    "wishes": (28844, 167560, 36),
    "push that comes and goes": (39744, 252307, 39),
    "no push, only reads": (4038, 22479, 23),
    "lifetimes": (31246, 183239, 31),
    "polling": (14604, 84434, 39),
    "lazy": (17790, 111269, 38),
    "capabilities": (17131, 120470, 38),
    "credentials": (30836, 192810, 39),
    "duplicates": (8720, 46415, 36),
    "endless": (7304, 37207, 38),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """What was found so far: each world is explored once."""
    return {}


@pytest.mark.rule("STATE-02")
@pytest.mark.parametrize("setting", [*ENVIRONMENTS, *FEATURES], ids=lambda setting: setting.name)
def test_the_promise_holds(setting: Setting, reports: dict[str, Report]) -> None:
    report = reports[setting.name] = explore(World(setting))
    assert report.counterexample is None, f"\n{report.counterexample}"
    assert (report.scenes, report.moves, report.depth) == PINNED[setting.name]


def test_everything_the_chart_declares_was_met(reports: dict[str, Report]) -> None:
    for setting in (*ENVIRONMENTS, *FEATURES):
        if setting.name not in reports:  # this test alone
            reports[setting.name] = explore(World(setting))
    met = frozenset[str]().union(*(report.reached for report in reports.values()))
    assert declared_rows() - met == frozenset()
    assert {word.value for word in (*Phase, *Doubt)} <= met


@pytest.mark.nightly
@pytest.mark.parametrize("setting", NIGHTLY, ids=lambda setting: setting.name)
def test_the_promise_holds_in_larger_worlds(setting: Setting) -> None:
    report = explore(World(setting))
    assert report.counterexample is None, f"\n{report.counterexample}"
