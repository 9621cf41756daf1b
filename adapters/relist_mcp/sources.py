"""Whence a published server's lists are read, where they are not committed by hand."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import anyio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR
from pydantic import BaseModel

from relist.messages import NAMES
from relist.publisher import Publisher
from relist.values import Item, Kind
from relist_mcp.hearing import canonical

Entries = Mapping[Kind, Sequence[BaseModel]]
Sees = Callable[[str, Kind, BaseModel], bool]
"""Whether a view (by its name) is shown this entry."""
Commit = Callable[[Kind, Iterable[Item], str], None]


def item_of(kind: Kind, entry: BaseModel) -> Item:
    """An entry of a list, as the core knows it."""
    listed = entry.model_dump(mode="json", by_alias=True, exclude_none=True)
    return Item(listed[NAMES[kind].key], canonical(listed))


class Source:
    """All lists of a server, read again when they may have changed, and cut to what a view sees.

    ``read`` tells them as they are now; ``outdated`` is for whoever changes them to set.
    """

    def __init__(self, read: Callable[[], Awaitable[Entries]], sees: Sees | None) -> None:
        self._read, self._sees = read, sees
        self._entries: Mapping[Kind, Sequence[tuple[BaseModel, Item]]] = {}
        self._lock = anyio.Lock()
        self.outdated = True

    def begin(self) -> None:
        """From now on it is read in this event loop, to which locks are bound."""
        self._lock = anyio.Lock()

    async def freshen(self, publisher: Publisher, view: str | None, commit: Commit) -> None:
        """Commit what may have changed, to all views, and to this one if it is new.

        Raises what ``read`` raises, and MCPError if there is no room for the view.
        """
        async with self._lock:
            if self.outdated:
                self.outdated = False  # by now: what changes meanwhile counts for the next time
                try:
                    self._entries = {
                        kind: [(entry, item_of(kind, entry)) for entry in entries]
                        for kind, entries in (await self._read()).items()
                    }
                except BaseException:
                    self.outdated = True
                    raise
                for known in tuple(publisher.views):
                    self._show(known, commit)
            if view is not None and view not in publisher.views:
                if publisher.full and not publisher.forget():
                    raise MCPError(INTERNAL_ERROR, "too many authorizations at once")
                self._show(view, commit)

    def _show(self, view: str, commit: Commit) -> None:
        sees = self._sees
        for kind, entries in self._entries.items():
            shown = (item for entry, item in entries if sees is None or sees(view, kind, entry))
            commit(kind, shown, view)
