"""What is logged of each step."""

import logging

from relist import effects as e
from relist.effects import Effect
from relist_mcp.loop import Fed

logger = logging.getLogger("relist_mcp")

_SEEN = (
    e.Publish
    | e.Withdraw
    | e.DoubtList
    | e.NeedCredentials
    | e.Note
    | e.ContentChanged
    | e.ContentUncovered
)


def log(fed: Fed) -> None:
    """Log what became of an input."""
    for effect in fed.effects:
        if isinstance(effect, _SEEN):
            _log(effect)


def _log(effect: Effect) -> None:
    """What the peer sent is not logged, only how much. Rule: OBS-06."""
    if isinstance(effect, e.Publish):
        kind, listed = effect.kind.value, effect.snapshot
        logger.debug(
            "%s: generation %d, %d items, changed %s, clean %s",
            *(kind, listed.generation, len(listed.items), effect.changed, listed.clean),
        )
    elif isinstance(effect, e.ContentChanged | e.ContentUncovered):
        logger.debug("%s", type(effect).__name__)
    else:
        logger.debug("%s", effect)
