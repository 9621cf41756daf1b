"""What a client broken on purpose is, and how a defect is put into the reference client."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import frozen

from relist import inputs as i
from relist import machine, requests
from relist.machine import Row
from relist.messages import Heard, read_page
from relist.rules.base import Step
from relist.values import Phase

Patch = pytest.MonkeyPatch
Act = Callable[..., Step]


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


def pages(patch: Patch, change: Callable[[i.PageArrived], i.PageArrived]) -> None:
    def read(*args: Any) -> Heard[Any]:
        page = read_page(*args)
        heard = page.heard
        return Heard(change(heard), page.notes) if isinstance(heard, i.PageArrived) else page

    patch.setattr(requests, "read_page", read)
