"""The law with some of its rules replaced: a step that gets exactly that wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from relist import machine
from relist.check.numbered import Stepper
from relist.effects import AbandonWalk, RequestPage
from relist.inputs import CatalogInput, PageArrived, PageFailed
from relist.machine import CATALOG_TABLE
from relist.policy import Policy
from relist.rules import doubt, guards, standing, walk
from relist.rules.base import Step
from relist.values import WALKING, Catalog, Doubt, Phase, Scope

Rules = Mapping[str, Callable[..., Any]]


def altered(rules: Rules) -> Stepper:
    """``step``, but for the guards and actions that are named here."""

    def step(catalog: Catalog, heard: CatalogInput, policy: Policy) -> Step:
        cell = CATALOG_TABLE[type(heard)][catalog.phase]
        for row, (guard, _, action) in zip(cell.rows, cell.names, strict=True):
            holds = rules.get(guard, row.guard)
            if holds is None or holds(catalog, heard, policy):
                stepped: Step = rules.get(action, row.action)(catalog, heard, policy, row.target)
                return stepped
        raise AssertionError(f"no row holds for {heard}")

    return step


def _then(rule: Callable[..., Step], change: Callable[[Catalog], Catalog]) -> Callable[..., Step]:
    """The rule, with its outcome changed."""

    def act(*args: Any) -> Step:
        state, effects = rule(*args)
        return Step(change(state), effects)

    return act


def _without(rule: Callable[..., Step], effect: type[Any]) -> Callable[..., Step]:
    """The rule, without one of its effects."""

    def act(*args: Any) -> Step:
        state, effects = rule(*args)
        return Step(state, tuple(told for told in effects if not isinstance(told, effect)))

    return act


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def _pacing(**changes: Any) -> Callable[[Catalog], Catalog]:
    return lambda catalog: evolve(catalog, pacing=evolve(catalog.pacing, **changes))


def _walking(**changes: Any) -> Callable[[Catalog], Catalog]:
    def change(catalog: Catalog) -> Catalog:
        return evolve(catalog, walk=catalog.walk and evolve(catalog.walk, **changes))

    return change


def _publish_as_fresh(catalog: Catalog, heard: Any, policy: Policy, _: Phase) -> Step:
    return walk.publish(catalog, heard, policy, Phase.FRESH)


def _second_walk(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
    again = walk.begin if catalog.phase in WALKING else walk.want
    return again(catalog, heard, policy, to)


def _list_undeclared(catalog: Catalog, heard: Any, policy: Policy, _: Phase) -> Step:
    return standing.begin_here(catalog, heard, policy, Phase.DISCOVERING)


def late_accepted(catalog: Catalog, heard: CatalogInput, policy: Policy) -> Step:
    """``step``, but any answer is taken for that of the outstanding request."""
    if isinstance(heard, PageArrived | PageFailed) and catalog.walk is not None:
        heard = evolve(heard, serial=catalog.walk.serial)
    return machine.step(catalog, heard, policy)


def _keep_private(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
    public = catalog.snapshot and evolve(catalog.snapshot, scope=Scope.PUBLIC)
    state, effects = standing.change_partition(evolve(catalog, snapshot=public), heard, policy, to)
    return Step(evolve(state, snapshot=catalog.snapshot), effects)


def _empty_on_failure(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
    state, effects = walk.fail(catalog, heard, policy, to)
    return Step(evolve(state, snapshot=None), effects)


def _always_changed(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
    state, effects = walk.publish(catalog, heard, policy, to)
    return Step(evolve(state, generation=catalog.generation + 1), effects)


def _moved_window(catalog: Catalog, heard: Any, policy: Policy, _: Phase) -> Step:
    return Step(_pacing(due_at_ms=heard.now_ms + policy.gather_ms)(catalog))


def _impatient_of_one_doubt(catalog: Catalog, heard: Any, _: Policy) -> bool:
    due_at_ms = catalog.pacing.due_at_ms
    return catalog.doubt is Doubt.FAILED or (due_at_ms is not None and heard.now_ms >= due_at_ms)


def _other_cursor(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
    state, effects = walk.gather(catalog, heard, policy, to)
    asked = tuple(
        evolve(told, cursor="another") if isinstance(told, RequestPage) else told
        for told in effects
    )
    return Step(state, asked)


def _names_a_cursor(catalog: Catalog, heard: PageArrived, policy: Policy) -> bool:
    return heard.next_cursor is not None and not guards.late(catalog, heard, policy)


FORGOTTEN_REWALK: Rules = {"spoil_noticed": walk.nothing}
CUT_WALK_PUBLISHED: Rules = {"gather": _publish_as_fresh}
DROPPED_DOUBT: Rules = {"doubt_noticed": walk.nothing}
NEVER_UNSPOILED: Rules = {
    "begin": _then(walk.begin, _walking(spoiled=True)),
    "begin_here": _then(standing.begin_here, _walking(spoiled=True)),
}
UNSPOILED_BY_A_PAGE: Rules = {"gather": _then(walk.gather, _walking(spoiled=False))}
SPOILED_PUBLISHED: Rules = {"set_aside": _publish_as_fresh}
DOUBT_REPLACED: Rules = {
    "fail": _then(walk.fail, lambda catalog: evolve(catalog, doubt=Doubt.FAILED))
}
SECOND_WALK: Rules = {"want": _second_walk}
REQUEST_FORGOTTEN: Rules = {"give_up": _without(walk.give_up, AbandonWalk)}
UNDECLARED_LISTED: Rules = {"withdraw": _list_undeclared}
PRIVATE_KEPT: Rules = {"change_partition": _keep_private}
EMPTY_ON_FAILURE: Rules = {"fail": _empty_on_failure}
ALWAYS_CHANGED: Rules = {"publish": _always_changed}
UNBOUNDED: Rules = {"overlong": _never, "more": _names_a_cursor}
LIMIT_IGNORED: Rules = {"gave_up": _never, "in_time": _always}
MOVED_WINDOW: Rules = {"keep_doubting": _moved_window}
NEVER_DUE: Rules = {"set_aside": _then(walk.set_aside, _pacing(due_at_ms=None))}
EARLY: Rules = {"due": _always}
SLEPT: Rules = {"due": _never, "not_due": _always}
BEGUN_FOR_NOBODY: Rules = {"begin": _then(walk.begin, _walking(serves=None))}
NOT_PARKED: Rules = {"park": _then(walk.park, _pacing(parked=None))}
COVERAGE_LOSS_UNRECORDED: Rules = {"uncover": walk.nothing}
ALWAYS_VOUCHED: Rules = {
    "publish": _then(walk.publish, lambda catalog: evolve(catalog, vouched=True))
}
FAILURES_FORGIVEN_BY_NOBODY: Rules = {
    "change_partition": _then(standing.change_partition, _pacing(failures=1))
}
UNHEEDED_UNNOTED: Rules = {"note_unheeded": walk.nothing}
TELLS_DOUBTS_APART: Rules = {"due": _impatient_of_one_doubt}
OTHER_CURSOR: Rules = {"gather": _other_cursor}
LOSS_FORGOTTEN: Rules = {
    "depart": _then(standing.depart, lambda catalog: evolve(catalog, doubt=None))
}
LIFETIME_FORGOTTEN: Rules = {"expired": _never, "unexpired": _always}
COVERAGE_LOSS_IGNORED: Rules = {"uncover_and_doubt": doubt.uncover}
