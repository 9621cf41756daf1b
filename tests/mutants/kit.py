"""What a client broken on purpose is, and how a defect is put into the reference client."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from attrs import frozen

from relist import inputs as i
from relist import machine, messages, requests
from relist.machine import Row
from relist.messages import Heard, read_page
from relist.rules.base import Step
from relist.values import Phase
from relist_mcp.connection import Connection

Patch = pytest.MonkeyPatch
Act = Callable[..., Step]
Result = dict[str, Any]


@frozen
class Defect:
    """One way to be wrong. ``seed`` lasts as long as the test; ``case`` is the case that is for it.

    Which other cases it touches as well stands in ``touched.txt``; all others have to pass, or a
    verdict would be about something else than it says.
    """

    name: str
    case: str
    seed: Callable[[Patch], None]


def replace(
    patch: Patch, heard: type[Any], acts: Mapping[Phase, Act], to: Phase | None = None
) -> None:
    """In these phases, do just that on hearing this, and keep the phase or go to another."""
    rows = dict(machine._CATALOG_ROWS)
    rows[heard] = {**rows[heard], **{p: (Row(None, to or p, act),) for p, act in acts.items()}}
    patch.setattr(machine, "_CATALOG_ROWS", rows)


def first(patch: Patch, heard: type[Any], phases: Iterable[Phase], row: Row) -> None:
    """In these phases let this row have its turn before those of the law; no target: it stays."""
    rows = dict(machine._CATALOG_ROWS)
    cells = dict(rows[heard])
    for phase in phases:
        cells[phase] = (row._replace(target=row.target or phase), *cells[phase])
    rows[heard] = cells
    patch.setattr(machine, "_CATALOG_ROWS", rows)


def results(patch: Patch, change: Callable[[Any, Result], Result]) -> None:
    """Read the results of list requests otherwise; ``change`` is told the kind."""
    real = messages.read_page

    def read(kind: Any, serial: int, result: Any, *rest: Any) -> Heard[Any]:
        return real(kind, serial, change(kind, dict(result)), *rest)

    patch.setattr(requests, "read_page", read)


def anew(patch: Patch, forget: Callable[[], None]) -> None:
    """Forget what was kept when another play begins."""
    real = Connection.__init__

    def begin(self: Connection, epoch: int, *more: Any) -> None:
        if epoch == 1:
            forget()
        real(self, epoch, *more)

    patch.setattr(Connection, "__init__", begin)


def pages(patch: Patch, change: Callable[[i.PageArrived], i.PageArrived]) -> None:
    def read(*args: Any) -> Heard[Any]:
        page = read_page(*args)
        heard = page.heard
        return Heard(change(heard), page.notes) if isinstance(heard, i.PageArrived) else page

    patch.setattr(requests, "read_page", read)
