"""What the model was given: a list that is published is not yet one that is used. Rule: ATOM-16.

A host hands its language model a *surface*: what it makes of one published list. It says so with
``SurfaceAdopted``; from then on calls are planned on that surface (``admission.plan``), and
``lag`` tells operators how far it lags. Rule: OBS-04, OBS-05, CALL-21.
"""

from typing import NamedTuple

from relist.errors import ImpossibleAct
from relist.frozen import frozen
from relist.inputs import SurfaceAdopted
from relist.values import Catalog, Items


@frozen
class Adoption:
    """The surface in use: made of this generation, with ``count`` entries.

    ``items`` is that list, None if it was replaced already when the host said so.
    """

    generation: int
    count: int
    items: Items | None
    adopted_at_ms: int


class Lag(NamedTuple):
    """How far a surface is behind: in generations (None: nothing was ever adopted) and entries."""

    generations: int | None
    offered: int
    listed: int


def adopt(catalog: Catalog, heard: SurfaceAdopted) -> Adoption:
    """The surface that the host says it handed out.

    Raises ImpossibleAct for a generation that was never published, or more entries than it has.
    """
    if not 1 <= heard.generation <= catalog.generation:
        raise ImpossibleAct(
            f"SurfaceAdopted.generation {heard.generation} was never published"
            f" ({catalog.kind.value}: newest is {catalog.generation})"
        )
    listed = catalog.snapshot
    current = listed is not None and listed.generation == heard.generation
    items = listed.items if listed is not None and current else None
    most = heard.count if items is None else len(items)
    if not 0 <= heard.count <= most:
        raise ImpossibleAct(
            f"SurfaceAdopted.count {heard.count} is not between 0 and {most}, the entries of"
            f" generation {heard.generation} of {catalog.kind.value}"
        )
    return Adoption(heard.generation, heard.count, items, heard.now_ms)


def lag(catalog: Catalog, adoption: Adoption | None) -> Lag:
    """How far what the model was given is behind what is published."""
    listed = 0 if catalog.snapshot is None else len(catalog.snapshot.items)
    if adoption is None:
        return Lag(None, 0, listed)
    return Lag(catalog.generation - adoption.generation, adoption.count, listed)
