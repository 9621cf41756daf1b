"""Every case is proved twice: the reference client passes it, a client broken on purpose does not.

In all revisions of the case, and in virtual time but for what only HTTP has. A defect is caught by
the case that is for it; of the other cases only those pinned in ``touched.txt`` may be anything but
passed.
"""

from string import ascii_uppercase

import pytest

from mutants.clusters import CLUSTERS
from mutants.every import ALL, DEFECTS, touches, word_of
from mutants.inside import judge_inside, judge_really
from mutants.kit import Defect
from mutants.matrix import played
from relist.check.deviation import first_deviation
from relist.check.expect import ANOMALIES
from relist_conformance.driver import KINDS, Hello
from relist_conformance.drivers.reference import OFFERED
from relist_conformance.runner import Cell, untestable
from relist_conformance.script import REVISIONS, Case
from support.least import check_found

FIRST = (
    *("paging:every-page", "notice:next-access", "failure:keeps-last-good"),
    *("late:timed-out-answer", "capability:undeclared", "reconnect:lists-again"),
)
"""A few of each sort, for the quick test that no defect is blamed for what it does not touch."""

PASSES = [(case, revision) for case in ALL.values() for revision in case.revisions]
FAILS = [(one, revision) for one in DEFECTS.values() for revision in ALL[one.case].revisions]


@pytest.mark.parametrize(
    ("case", "revision"), PASSES, ids=[f"{case.id}-{revision}" for case, revision in PASSES]
)
def test_the_reference_client_passes(case: Case, revision: str) -> None:
    played = judge_inside(case, revision)
    assert word_of(played) == "pass", (played.outcome, played.verdict)
    assert first_deviation(played.history) is None


@pytest.mark.parametrize(
    ("defect", "revision"), FAILS, ids=[f"{one.name}-{revision}" for one, revision in FAILS]
)
def test_a_defect_is_caught_by_its_case(
    defect: Defect, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    case = ALL[defect.case]
    seen = judge_inside(case, revision)
    assert word_of(seen) == case.severity[revision]
    assert seen.verdict is not None
    check_found(case.expect, seen.history, seen.verdict.findings)


REAL = [
    (one, Cell(ALL[one.case], transport, revision))
    for one in DEFECTS.values()
    for transport in ("stdio", "http")
    if transport in ALL[one.case].transports
    for revision in ALL[one.case].revisions
]
INSIDE = Hello("inside", "", "full", OFFERED, ("stdio", "http"), REVISIONS, KINDS)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("defect", "cell"),
    [(one, cell) for one, cell in REAL if untestable(cell, INSIDE) is None],
    ids=lambda one: one.name if isinstance(one, Defect) else one.where.replace(" ", "-"),
)
def test_a_defect_is_caught_over_real_transports(
    defect: Defect, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    played = judge_really(cell.case, cell.revision, cell.transport)
    assert word_of(played) == cell.case.severity[cell.revision]


def _touched(defect: str, cases: list[str]) -> None:
    """What these cases make of a defect is what is pinned."""
    pinned = [touch for touch in touches() if touch.defect == defect and touch.case in cases]
    assert sorted(played(defect, cases)) == pinned


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_first_cases_find_what_is_pinned(defect: str) -> None:
    _touched(defect, [*FIRST])


@pytest.mark.nightly
@pytest.mark.parametrize("defect", DEFECTS)
def test_all_cases_find_what_is_pinned(defect: str) -> None:
    _touched(defect, [*ALL])


def test_every_case_has_a_client_that_fails_it() -> None:
    assert ALL.keys() - {defect.case for defect in DEFECTS.values()} == set()


def test_every_kind_of_harm_has_a_defect() -> None:
    assert {ALL[defect.case].anomaly for defect in DEFECTS.values()} == {*ANOMALIES}


def test_every_kind_of_public_report_has_a_defect_or_a_reason() -> None:
    assert "".join(CLUSTERS) == ascii_uppercase[: len(CLUSTERS)]
    for cluster in CLUSTERS.values():
        assert bool(cluster.defects) != bool(cluster.why_not)
        assert DEFECTS.keys() >= {*cluster.defects}


def test_what_is_pinned_exists() -> None:
    assert {(one.defect, one.case) for one in touches()} <= {(d, c) for d in DEFECTS for c in ALL}
