"""The live view of a terminal: what happens scrolls by, and below it stands how things are."""

from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from relist.machine import Hit, read
from relist.policy import Policy
from relist.rules.guards import wake_ms
from relist.session import Session
from relist.values import Catalog
from relist_conformance.errors import plain
from relist_conformance.report.lines import Line
from relist_mcp.loop import Fed

COLUMNS = ("", "phase", "doubt", "entries", "generation", "push", "next walk")


class Printed:
    """Lines as they come. One that repeats the last is counted, so that a storm stays readable."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._began_ms: int | None = None
        self._last: Line | None = None
        self._again = 0

    def __call__(self, line: Line) -> None:
        """Print it, or count it."""
        if self._began_ms is None:
            self._began_ms = line.at_ms
        last = self._last
        if last is not None and line.about and last[1:] == line[1:]:
            self._again += 1
            self._last = line
            return
        self.flush()
        self._last = line
        self._say(line.shown(self._began_ms))

    def flush(self) -> None:
        """Say how often the last line came again."""
        if self._again and self._last is not None and self._began_ms is not None:
            again = f"{self._last.about}: the same {self._again} more times"
            self._say(Line(self._last.at_ms, "", again).shown(self._began_ms))
        self._again = 0


class LiveView:
    """The view below the lines; only a terminal has one."""

    def __init__(self, console: Console, title: str, policy: Policy) -> None:
        self._title = title
        self._policy = policy
        self._session: Session | None = None
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._shows = console.is_terminal

    def __enter__(self) -> "LiveView":
        if self._shows:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def __call__(self, fed: Fed) -> None:
        """Show what became of it at the next tick."""
        self._session = fed.after

    def tick(self, now_ms: int) -> None:
        """Show how things are now."""
        if self._shows and self._session is not None:
            shown = table(self._session, self._policy, self._title, now_ms)
            self._live.update(shown, refresh=True)


def table(session: Session, policy: Policy, title: str, now_ms: int) -> Table:
    """How things are: a row for each kind, and a line about link and push."""
    link = session.link
    spoken = f" ({link.era.value} {plain(link.version)})" if link.era and link.version else ""
    below = f"link {link.phase.value}{spoken}, push {session.listen.phase.value}"
    made = Table(title=plain(title), caption=below, title_justify="left", caption_justify="left")
    for name in COLUMNS:
        made.add_column(name)
    for catalog in session.catalogs:
        made.add_row(*_row(catalog, policy, now_ms))
    return made


def _row(catalog: Catalog, policy: Policy, now_ms: int) -> Sequence[str]:
    reading = read(catalog, now_ms)
    listed, wake_at_ms = catalog.snapshot, wake_ms(catalog, policy)
    waits = wake_at_ms is not None and catalog.walk is None
    expired = ", expired" if reading.hit is Hit.EXPIRED else ""
    parked = catalog.pacing.parked
    soon = f"in {max(0, (wake_at_ms or 0) - now_ms) / 1000:.1f} s" if waits else ""
    return (
        catalog.kind.value,
        f"{catalog.phase.value}{expired}",
        "" if catalog.doubt is None else catalog.doubt.value,
        "" if listed is None else str(len(listed.items)),
        str(catalog.generation or ""),
        "covered" if catalog.standing.covered else "",
        f"parked: {parked.value}" if parked else soon,
    )
