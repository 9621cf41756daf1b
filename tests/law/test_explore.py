"""Everything that can happen in the small worlds, looked at: the promises hold in each.

The numbers are pinned. They change with the law; a change that nobody expected is worth a look.
"""

import gc
from collections.abc import Callable, Iterable, Mapping
from functools import cache

import pytest
from attrs import frozen

from relist.check import numbered
from relist.check.collection import DEFAULT, LARGER, SESSIONS, Entry, must_happen
from relist.check.explore import Move, Report, explore
from relist.check.numbered import Stepper
from relist.check.rows import declared_rows
from relist.check.session_world import PAIRS
from relist.check.world import World
from relist.check.worlds import by_name
from relist.inputs import ListingAllowed
from relist.machine import CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE, Cell
from relist.values import LinkPhase, ListenPhase, Phase
from support import altered

PINNED = {  # scenes, moves, and the most moves it takes to come anywhere
    "ordered atomic lossless": (14_848, 78_699, 40),
    "ordered atomic lossy": (26_350, 170_336, 40),
    "ordered delayed lossless": (46_716, 271_804, 45),
    "ordered delayed lossy": (51_294, 356_466, 45),
    "unordered atomic lossless": (12_721, 75_080, 38),
    "unordered atomic lossy": (14_182, 92_934, 38),
    "unordered delayed lossless": (24_152, 157_104, 42),
    "unordered delayed lossy": (25_354, 180_514, 42),
    "failures": (17_181, 61_698, 31),
    "authorization": (21_162, 104_154, 30),
    "wishes": (43_280, 251_166, 37),
    "calls on doubt": (20_915, 110_703, 23),
    "push that comes and goes": (18_531, 88_453, 32),
    "no push, only reads": (3_918, 21_819, 23),
    "lifetimes": (11_550, 59_971, 31),
    "polling": (14_688, 84_910, 39),
    "lazy": (34_182, 214_236, 39),
    "capabilities": (16_945, 119_146, 38),
    "credentials": (17_411, 81_507, 40),
    "duplicates": (8_766, 46_644, 36),
    "endless": (7_360, 37_476, 38),
    "one page": (1_760, 7_998, 30),
    "link over pipe": (456, 3_602, 13),
    "link over http": (746, 5_397, 14),
    "listen": (371, 6_454, 12),
    "session, legacy on a pipe": (5_448, 31_193, 18),
    "session, legacy over http": (8_921, 51_871, 19),
    "session, modern over http": (6_770, 29_718, 22),
    "session, new offers": (20_009, 103_709, 23),
}


MAKE = {entry.name: entry.make for entry in DEFAULT}


@cache
def explored(name: str) -> Report:
    """What there is to find: each world is explored once, whichever test comes first."""
    return explore(MAKE[name]())


@pytest.mark.thorough
@pytest.mark.rule("STATE-02")
@pytest.mark.parametrize("name", MAKE)
def test_the_promises_hold(name: str) -> None:
    report = explored(name)
    assert report.counterexample is None, f"\n{report.counterexample}"
    assert report.complete
    assert (report.scenes, report.moves, report.depth) == PINNED[name]


@pytest.mark.thorough
def test_whatever_must_happen_happens_somewhere() -> None:
    happened = frozenset[str]().union(*(explored(name).reached for name in MAKE))
    assert must_happen() - happened == frozenset()


@pytest.mark.thorough
@pytest.mark.rule("STATE-05")
@pytest.mark.parametrize("name", [entry.name for entry in SESSIONS])
def test_kinds_keep_apart(name: str) -> None:
    report = explored(name)
    assert report.counterexample is None, f"\n{report.counterexample}"
    assert PAIRS - report.reached == frozenset()


@pytest.mark.parametrize("name", MAKE)
def test_each_world_begins_well(name: str) -> None:
    """Soon after a change of the law; the smallest are seen to their end."""
    report = explore(MAKE[name](), scenes_max=600)
    assert report.counterexample is None, f"\n{report.counterexample}"
    assert report.complete is (PINNED[name][0] <= 600)
    assert report.reached


def test_every_row_and_every_phase_must_happen() -> None:
    for table in (CATALOG_TABLE, LINK_TABLE, LISTEN_TABLE):
        assert declared_rows(table) <= must_happen()
    assert {phase.value for phase in (*Phase, *LinkPhase, *ListenPhase)} <= must_happen()


def test_each_world_has_a_name_of_its_own() -> None:
    assert list(PINNED) == list(MAKE)
    made = [(entry.name, entry.make().name) for entry in (*DEFAULT, *LARGER)]
    assert all(name == world for name, world in made)
    assert len(dict(made)) == len(made)


@pytest.mark.nightly
@pytest.mark.parametrize("entry", LARGER, ids=lambda entry: entry.name)
def test_the_promises_hold_in_larger_worlds(entry: Entry) -> None:
    report = explore(entry.make())
    assert report.counterexample is None, f"\n{report.counterexample}"


# --- what the environment promises is checked, too: with no other check, each fault is found ------

_FORGETFUL = altered.altered(altered.FORGOTTEN_REWALK)
SEEDED: tuple[tuple[str, str, Stepper, str], ...] = (
    ("a walk is not spoiled", "ordered atomic lossless", _FORGETFUL, "never-torn"),
    ("a walk is not spoiled", "unordered delayed lossless", _FORGETFUL, "freshness"),
    (
        "a notice is dropped",
        "ordered delayed lossless",
        altered.altered(altered.DROPPED_DOUBT),
        "freshness",
    ),
    (
        "a spoiled list is fresh",
        "unordered atomic lossless",
        altered.altered(altered.SPOILED_PUBLISHED),
        "freshness",
    ),
    (
        "the first page is the list",
        "ordered atomic lossy",
        altered.altered(altered.CUT_WALK_PUBLISHED),
        "complete-or-nothing",
    ),
    ("late answers count", "one page", altered.late_accepted, "no-regression"),
    (
        "walks begin spoiled",
        "ordered atomic lossless",
        altered.altered(altered.NEVER_UNSPOILED),
        "recovers",
    ),
    (
        "nothing is due after a spoiled walk",
        "unordered atomic lossy",
        altered.altered(altered.NEVER_DUE),
        "recovers",
    ),
    (
        "a read does not look at the lifetime",
        "no push, only reads",
        altered.altered(altered.LIFETIME_FORGOTTEN),
        "converges",
    ),
    (
        "a timer is believed early",
        "ordered atomic lossless",
        altered.altered(altered.EARLY),
        "timer",
    ),
    (
        "one doubt is hastier than others",
        "failures",
        altered.altered(altered.TELLS_DOUBTS_APART),
        "doubts-alike",
    ),
)


@pytest.mark.parametrize(
    ("world", "step", "claim"),
    [pytest.param(*rest, id=f"{what}, {rest[0]}") for what, *rest in SEEDED],
)
def test_a_promise_bites(world: str, step: Stepper, claim: str) -> None:
    report = explore(World(by_name(world), step, checks={}))
    assert report.counterexample is not None, "the fault was not found"
    assert report.counterexample.claim.startswith(f"{claim}: ")


FORGOTTEN_REWALK = """
never-torn: FRESH and vouched for, with pages of different ages
   1. client connects               initializing
   2. listing is granted            discovering, page 1 asked for
   3. server answers                discovering, page 1 asked for | wire: page of age 0
   4. server changes and announces  discovering, page 1 asked for | wire: page of age 1 notice
   5. answer arrives                discovering, page 2 asked for | wire: notice
   6. server answers                discovering, page 2 asked for | wire: notice page of age 0
   7. notice arrives                discovering, page 2 asked for | wire: page of age 0
   8. answer arrives                fresh, list 1,0
"""


def test_a_counterexample_reads_as_what_happened() -> None:
    setting = by_name("ordered atomic lossless")
    report = explore(World(setting, _FORGETFUL, checks={}))
    assert f"\n{report.counterexample}\n" == FORGOTTEN_REWALK


# --- the explorer itself --------------------------------------------------------------------------


@frozen
class Toy:
    """A world as a table: scene -> moves of (label, scene)."""

    table: Mapping[str, tuple[tuple[str, str], ...]]
    urgent: frozenset[str] = frozenset({"go"})
    patient: frozenset[str] = frozenset({"rest", "try"})
    timeless: frozenset[str] = frozenset({"buzz", "toil"})
    costly: frozenset[str] = frozenset({"toil"})
    name: str = "toy"
    reached: frozenset[str] = frozenset()

    @property
    def goals(self) -> Mapping[str, Callable[[str], bool]]:
        """The good scenes are in capitals."""
        return {"arrives": str.isupper}

    def initial(self) -> str:
        return "a"

    def moves(self, scene: str) -> Iterable[Move[str]]:
        return [Move(label, to, None) for label, to in self.table.get(scene, ())]

    def promise(self, scene: str) -> str | None:
        return "bad: seen" if scene == "bad" else None

    def show(self, scene: str) -> str:
        return scene


def _found(**table: tuple[tuple[str, str], ...]) -> str | None:
    found = explore(Toy(table)).counterexample
    return None if found is None else found.claim


def test_the_nearest_fault_is_shown() -> None:
    table = {
        "a": (("far", "b"), ("near", "bad")),
        "b": (("far", "bad"),),
    }
    found = explore(Toy(table)).counterexample
    assert found is not None
    assert found.lines == (("near", "bad"),)


def test_an_end_short_of_the_goal_is_found() -> None:
    assert _found(a=(("go", "b"),)) == "arrives: it ends here"
    assert _found(a=(("go", "B"),)) is None


def test_a_circle_short_of_the_goal_is_found() -> None:
    found = explore(Toy({"a": (("go", "b"),), "b": (("go", "c"),), "c": (("go", "b"),)}))
    assert found.counterexample is not None
    assert found.counterexample.returns_to == 1
    assert found.counterexample.lines == (("go", "b"), ("go", "c"), ("go", "b"))


def test_a_circle_that_keeps_denying_a_move_is_unfair() -> None:
    assert _found(a=(("rest", "b"), ("try", "B")), b=(("rest", "a"), ("try", "B"))) is None
    assert _found(a=(("rest", "b"), ("try", "B")), b=(("rest", "a"),)) is not None


def test_a_costly_circle_without_time_is_found() -> None:
    harmless = (("go", "B"), ("buzz", "a"))
    assert _found(a=harmless) is None
    found = explore(Toy({"a": (*harmless, ("buzz", "c")), "c": (("go", "B"), ("toil", "a"))}))
    assert found.counterexample is not None
    assert found.counterexample.claim == "bounded-traffic: a circle without time"
    assert found.counterexample.lines == (("buzz", "c"), ("toil", "a"), ("buzz", "c"))


def test_leaving_the_goal_again_and_again_is_found() -> None:
    assert _found(a=(("go", "B"),), B=(("go", "a"),)) == "arrives: never, going in a circle"


def test_what_is_urgent_comes_before_what_is_not() -> None:
    assert _found(a=(("go", "B"), ("rest", "c"))) == "arrives: it ends here"  # c is met, and ends
    assert _found(a=(("go", "B"), ("rest", "a"))) is None


def test_too_large_a_world_gets_no_verdict() -> None:
    report = explore(World(by_name("ordered atomic lossless")), scenes_max=100)
    assert not report.complete
    assert report.counterexample is None


def test_the_collector_is_left_as_it_was() -> None:
    """Exploring goes without it: nothing that it makes lies in a circle."""
    toy = Toy({"a": (("go", "B"),)})
    assert gc.isenabled()
    explore(toy)
    assert gc.isenabled()
    gc.disable()
    try:
        explore(toy)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_cell_where_no_row_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    gap = {**CATALOG_TABLE[ListingAllowed], Phase.INITIALIZING: Cell((), (), "")}
    monkeypatch.setattr(numbered, "CATALOG_TABLE", {**CATALOG_TABLE, ListingAllowed: gap})
    found = explore(World(by_name("one page"))).counterexample
    assert found is not None
    assert found.claim == "one-row: 0 rows hold: []"


def test_progress_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relist.check.explore.PROGRESS_EVERY", 500)
    told: list[tuple[int, int]] = []

    def tell(scenes: int, pending: int) -> None:
        told.append((scenes, pending))

    report = explore(World(by_name("one page")), tell)
    assert len(told) == report.scenes // 500
    assert all(0 <= pending < scenes <= report.scenes for scenes, pending in told)
