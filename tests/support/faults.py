"""Faults to seed: each changes one thing of the law, and names the promises that it breaks."""

from collections.abc import Callable

import pytest
from attrs import evolve, frozen

from relist import charts, machine, session
from relist.inputs import CredentialsChanged, PageArrived
from relist.paging import too_long
from relist.policy import Policy
from relist.rules import doubt, guards, standing, walk
from relist.rules.base import Step, open_walk
from relist.values import Catalog, Phase, Scope

LAW = (guards, standing, doubt, walk)


@frozen
class Fault:
    """A way to get it wrong. ``seed`` lasts as long as the test."""

    name: str
    caught_by: frozenset[str]
    seed: Callable[[pytest.MonkeyPatch], None]


def recompile(patch: pytest.MonkeyPatch) -> None:
    """Let the running table name the rules as they are now."""
    table = machine.compile_chart(charts.CatalogChart, charts.CATALOG_DEFAULTS, LAW)
    patch.setattr(machine, "_CATALOG_ROWS", machine._rows(table))


def forgotten_rewalk(patch: pytest.MonkeyPatch) -> None:
    """A notice during a walk does not spoil it: the change it announced may be missed."""
    patch.setattr(doubt, "spoil_noticed", walk.nothing)
    recompile(patch)


def late_accepted(patch: pytest.MonkeyPatch) -> None:
    """No answer is ever late: that of an abandoned request counts as that of the current one."""
    patch.setattr(guards, "late", lambda *_: False)
    recompile(patch)


def cut_walk_published(patch: pytest.MonkeyPatch) -> None:
    """The page bound is taken for the end of the list."""

    def ends(catalog: Catalog, heard: PageArrived, policy: Policy) -> bool:
        if guards.late(catalog, heard, policy):
            return False
        return heard.next_cursor is None or too_long(open_walk(catalog), heard, policy)

    patch.setattr(guards, "overlong", lambda *_: False)
    patch.setattr(guards, "_ends", ends)
    recompile(patch)


def foreign_believed(patch: pytest.MonkeyPatch) -> None:
    """A notice counts whatever its tag says: other clients' notices cause traffic here."""
    patch.setattr(session.Run, "_fault_of", lambda *_: None)


def lifetime_forgotten(patch: pytest.MonkeyPatch) -> None:
    """No lifetime ever ends."""
    patch.setattr(guards, "expired", lambda *_: False)
    recompile(patch)


def private_kept(patch: pytest.MonkeyPatch) -> None:
    """What is private to one partition is shown to the next."""
    moves = standing.change_partition

    def keeps(catalog: Catalog, heard: CredentialsChanged, policy: Policy, to: Phase) -> Step:
        public = catalog.snapshot and evolve(catalog.snapshot, scope=Scope.PUBLIC)
        state, effects = moves(evolve(catalog, snapshot=public), heard, policy, to)
        return Step(evolve(state, snapshot=catalog.snapshot), effects)

    patch.setattr(standing, "change_partition", keeps)
    recompile(patch)


FAULTS = (
    Fault("forgotten-rewalk", frozenset({"doubt-is-heeded"}), forgotten_rewalk),
    Fault("late-accepted", frozenset({"no-late-overwrite", "single-flight"}), late_accepted),
    Fault("cut-walk-published", frozenset({"complete-or-nothing"}), cut_walk_published),
    Fault("lifetime-forgotten", frozenset({"converges", "wish-is-kept"}), lifetime_forgotten),
)
UNSEEN = (
    Fault("foreign-believed", frozenset({"push-is-current"}), foreign_believed),
    Fault("private-kept", frozenset({"private-stays-private"}), private_kept),
)
"""Faults that no comparison of lists shows."""
