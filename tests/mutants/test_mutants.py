"""Every case is proved twice: the reference client passes it, a client broken on purpose does not.

In all revisions of the case, and in virtual time but for what only HTTP has. A defect is caught by
the case that is for it; of the other cases only those that the same defect must touch may be
anything but passed.
"""

from collections.abc import Iterable

import pytest

from mutants import bare, defects, readings, shapes, storms, voices
from mutants.inside import judge_inside
from mutants.kit import Defect
from relist_conformance.play import Played
from relist_conformance.script import Case, load_cases

ALL = {case.id: case for case in load_cases()}
CASES = {name: case for name, case in ALL.items() if "memory" in case.transports}
"""Cases that are played in virtual time. The others take real time, and only their own defects."""
DEFECTS = (
    *defects.DEFECTS,
    *bare.DEFECTS,
    *readings.DEFECTS,
    *shapes.DEFECTS,
    *storms.DEFECTS,
    *voices.DEFECTS,
)


def _word(played: Played) -> str:
    if played.verdict is not None and played.outcome.word == "judged":
        return played.verdict.word
    return played.outcome.word


FIRST = (
    *("paging:every-page", "notice:next-access", "failure:keeps-last-good"),
    *("late:timed-out-answer", "capability:undeclared", "reconnect:lists-again"),
)
"""A few of each sort, for the quick test that no defect is blamed for what it does not touch."""

PASSES = [(case, revision) for case in ALL.values() for revision in case.revisions]
FAILS = [(one, revision) for one in DEFECTS for revision in ALL[one.case].revisions]


@pytest.mark.parametrize(
    ("case", "revision"), PASSES, ids=[f"{case.id}-{revision}" for case, revision in PASSES]
)
def test_the_reference_client_passes(case: Case, revision: str) -> None:
    played = judge_inside(case, revision)
    assert _word(played) == "pass", (played.outcome, played.verdict)


SEEDED = pytest.mark.parametrize(
    ("defect", "revision"), FAILS, ids=[f"{one.name}-{revision}" for one, revision in FAILS]
)


@SEEDED
def test_a_defect_is_caught_by_its_case(
    defect: Defect, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    case = ALL[defect.case]
    assert _word(judge_inside(case, revision)) == case.severity[revision]


def _blamed(defect: Defect, revision: str, cases: Iterable[str]) -> dict[str, str]:
    """What is not passed of these cases that have nothing to do with the defect."""
    words = {
        name: _word(judge_inside(CASES[name], revision))
        for name in cases
        if name != defect.case and name not in defect.also and revision in CASES[name].revisions
    }
    return {name: word for name, word in words.items() if word != "pass"}


@SEEDED
def test_no_unrelated_case_of_the_first_blames_it(
    defect: Defect, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    assert _blamed(defect, revision, FIRST) == {}


@pytest.mark.nightly
@SEEDED
def test_no_unrelated_case_blames_it(
    defect: Defect, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect.seed(monkeypatch)
    assert _blamed(defect, revision, CASES) == {}


def test_every_case_has_a_client_that_fails_it() -> None:
    assert ALL.keys() - {defect.case for defect in DEFECTS} == set()
