"""How a watched server is shown: to people, with a live view on a terminal, or to programs."""

from collections.abc import Callable
from typing import Protocol

from rich.console import Console

from relist.policy import Policy
from relist_conformance.report.lines import lines_of
from relist_conformance.report.live import LiveView, Printed
from relist_conformance.report.told import Ended, json_of
from relist_mcp.events import Event
from relist_mcp.exchange import now_ms
from relist_mcp.loop import Fed


class Show(Protocol):
    """Who is told what happens, in order, and then the end."""

    def observe(self, fed: Fed) -> None:
        """A step, before what happened in it."""

    def tell(self, event: Event) -> None:
        """Something happened."""

    def log(self, line: str) -> None:
        """The server wrote this line to its stderr; it is safe to print."""

    def tick(self) -> None:
        """Time passed."""

    def end(self, ended: Ended) -> None:
        """Nothing more is watched."""


class ForPeople:
    """Lines, and below them the live view where there is a terminal."""

    def __init__(self, out: Console, title: str, policy: Policy) -> None:
        self.view = LiveView(out, title, policy)
        self._out = out
        self._printed = Printed(self._say)
        self._say(f"watching {title}")

    def observe(self, fed: Fed) -> None:
        """See ``Show``."""
        self.view(fed)

    def tell(self, event: Event) -> None:
        """See ``Show``."""
        for line in lines_of(event):
            self._printed(line)

    def log(self, line: str) -> None:
        """See ``Show``."""
        self._printed.flush()
        self._say(f"           server log          {line}")

    def tick(self) -> None:
        """See ``Show``."""
        self.view.tick(now_ms())

    def end(self, ended: Ended) -> None:
        """See ``Show``."""
        self._printed.flush()
        self._say(f"ended: {ended.why}")

    def _say(self, text: str) -> None:
        self._out.print(text, soft_wrap=True)


class ForPrograms:
    """JSON lines on stdout; what the server logs goes to stderr."""

    def __init__(self, say: Callable[[str], None], err: Console) -> None:
        self._say = say
        self._err = err

    def observe(self, fed: Fed) -> None:
        """See ``Show``."""

    def tell(self, event: Event) -> None:
        """See ``Show``."""
        self._say(json_of(event))

    def log(self, line: str) -> None:
        """See ``Show``."""
        self._err.print(f"server log: {line}", soft_wrap=True)

    def tick(self) -> None:
        """See ``Show``."""

    def end(self, ended: Ended) -> None:
        """See ``Show``."""
        self._say(json_of(ended))
