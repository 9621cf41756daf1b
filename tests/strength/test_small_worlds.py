"""The promises in the smallest worlds, where mutants of the sources run into them.

Nothing pinned takes part: what kills a mutant here is a broken promise.
"""

from typing import Any

import pytest

from relist.check.chart_worlds import LinkWorld, ListenWorld
from relist.check.explore import Explorable, explore
from relist.check.world import World
from relist.values import Wire
from strength.tables import SMALL

WORLDS: tuple[Explorable[Any], ...] = (
    ListenWorld(),
    LinkWorld(Wire.PIPE),
    LinkWorld(Wire.HTTP),
    *map(World, SMALL),
)


SCENES_MAX = 50_000  # more than twice what the largest of them has


@pytest.mark.strength
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_the_promise_holds(world: Explorable[Any]) -> None:
    report = explore(world, scenes_max=SCENES_MAX)
    assert report.complete, "a mutant made the world grow without end"
    assert report.counterexample is None, f"\n{report.counterexample}"
