"""Each check that holds everywhere bites: a law with one rule altered breaks it, and is found."""

from collections.abc import Callable

import pytest

from relist.check.explore import explore
from relist.check.invariants import ALWAYS
from relist.check.numbered import Stepper
from relist.check.world import World
from relist.check.worlds import by_name
from support import altered
from support.altered import Rules

SMALLEST = "ordered atomic lossless"

FAULTS: tuple[tuple[str, str, Rules, str], ...] = (
    ("single-flight", "a request is given up silently", altered.REQUEST_FORGOTTEN, SMALLEST),
    ("single-flight", "a wish begins a second walk", altered.SECOND_WALK, "wishes"),
    ("walk-from-the-start", "another cursor is sent", altered.OTHER_CURSOR, SMALLEST),
    ("walk-from-the-start", "walks begin spoiled", altered.NEVER_UNSPOILED, SMALLEST),
    ("spoiled-stays-spoiled", "a page un-spoils", altered.UNSPOILED_BY_A_PAGE, SMALLEST),
    ("complete-or-nothing", "the first page is the list", altered.CUT_WALK_PUBLISHED, SMALLEST),
    ("fresh-is-undoubted", "a spoiled list is fresh", altered.SPOILED_PUBLISHED, SMALLEST),
    ("doubt-sticks", "a failure replaces the doubt", altered.DOUBT_REPLACED, "failures"),
    ("doubt-is-heeded", "a notice is dropped", altered.DROPPED_DOUBT, SMALLEST),
    ("doubt-is-heeded", "a walk is not spoiled", altered.FORGOTTEN_REWALK, SMALLEST),
    ("doubt-is-heeded", "a lost link leaves no doubt", altered.LOSS_FORGOTTEN, SMALLEST),
    (
        "doubt-is-heeded",
        "the end of push leaves no doubt",
        altered.COVERAGE_LOSS_IGNORED,
        "push that comes and goes",
    ),
    ("generation-rises", "every listing is a change", altered.ALWAYS_CHANGED, SMALLEST),
    ("keep-last-good", "a failure empties the list", altered.EMPTY_ON_FAILURE, "failures"),
    (
        "gated-by-capability",
        "an undeclared kind is listed",
        altered.UNDECLARED_LISTED,
        "capabilities",
    ),
    ("private-stays-private", "a private list is kept", altered.PRIVATE_KEPT, "credentials"),
    ("bounded-walk", "pages are not counted", altered.UNBOUNDED, "endless"),
    ("bounded-walk", "time-outs are ignored", altered.LIMIT_IGNORED, SMALLEST),
    ("bounded-traffic", "a notice moves the window", altered.MOVED_WINDOW, SMALLEST),
    ("bounded-traffic", "walks begin before they are due", altered.EARLY, SMALLEST),
    ("bounded-lag", "nothing is due after a spoiled walk", altered.NEVER_DUE, SMALLEST),
    (
        "standing-is-as-told",
        "the end of push is not recorded",
        altered.COVERAGE_LOSS_UNRECORDED,
        "push that comes and goes",
    ),
    (
        "phase-has-its-reason",
        "an undeclared kind is listed",
        altered.UNDECLARED_LISTED,
        "capabilities",
    ),
    ("wish-is-kept", "a walk serves nobody", altered.BEGUN_FOR_NOBODY, "wishes"),
    ("time-is-kept", "nothing begins when it is due", altered.SLEPT, SMALLEST),
    ("answer-counts", "401 does not park", altered.NOT_PARKED, "authorization"),
    ("vouched-is-earned", "all is vouched for", altered.ALWAYS_VOUCHED, "no push, only reads"),
    (
        "link-begins-anew",
        "other credentials forgive nothing",
        altered.FAILURES_FORGIVEN_BY_NOBODY,
        "credentials",
    ),
    (
        "notice-is-told",
        "an undeclared notice is not noted",
        altered.UNHEEDED_UNNOTED,
        "no push, only reads",
    ),
)


@pytest.mark.parametrize(
    ("check", "rules", "world"),
    [pytest.param(name, rules, world, id=f"{name}: {what}") for name, what, rules, world in FAULTS],
)
def test_a_check_bites(check: str, rules: Rules, world: str) -> None:
    claim = _claim(altered.altered(rules), world, check)
    assert claim.startswith(f"{check}: ")


def test_a_late_answer_that_counts_is_found() -> None:
    claim = _claim(altered.late_accepted, SMALLEST, "no-late-overwrite")
    assert claim == "no-late-overwrite: a late answer changed the catalog"


def test_every_check_is_shown_to_bite() -> None:
    assert {name for name, *_ in FAULTS} | {"no-late-overwrite"} == set(ALWAYS)


def _claim(step: Stepper, world: str, check: str) -> str:
    """What an exploration with this one check complains of."""
    checks: dict[str, Callable[..., str | None]] = {check: ALWAYS[check]}
    report = explore(World(by_name(world), step, checks))
    assert report.counterexample is not None, "the fault was not found"
    return report.counterexample.claim
