"""How far a command has come, told on stderr."""

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn


class Progress:
    """A bar on a terminal; elsewhere one line per result."""

    def __init__(self, console: Console, total: int) -> None:
        self._console = console
        self._total = total
        self._done = 0
        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.completed}/{task.total} {task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total)

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def under_way(self, text: str) -> None:
        """What is being done; only a terminal shows it."""
        self._bar.update(self._task, description=text, refresh=True)

    def finished(self, text: str) -> None:
        """One more result."""
        self._done += 1
        self._bar.update(self._task, completed=self._done, description=text)
        if not self._console.is_terminal:
            self._console.print(f"{self._done}/{self._total} {text}")
