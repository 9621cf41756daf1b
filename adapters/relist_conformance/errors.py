"""What can go wrong around a run, as opposed to in the client under test.

Every message is one line that names the thing (a driver, a case, a port). Text that a peer sent is
quoted with ``quoted`` before it enters a message, so a message is safe to print.
"""

from errno import EISDIR
from os import strerror
from pathlib import Path

MAX_QUOTED_CHARS = 120


class ConformanceError(Exception):
    """The suite cannot judge: bad input or a broken harness. The command line exits with 2."""


class DriverError(ConformanceError):
    """The driver process does not start, breaks the contract, hangs or is gone."""


class DriverReplyError(DriverError):
    """The driver is alive and answered one command with an error.

    ``code`` is the code the driver gave, such as ``"unsupported"``, or None.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def quoted(text: str, limit: int = MAX_QUOTED_CHARS) -> str:
    """Text of a peer for one line of a message: as ``plain``, in quotation marks."""
    return "'" + plain(text.replace("\\", "\\\\").replace("'", "\\'"), limit) + "'"


def plain(text: str, limit: int = MAX_QUOTED_CHARS) -> str:
    """Text of a peer made safe to print: one line, no control characters, at most ``limit`` long.

    A longer text is cut and ends in an ellipsis.
    """
    shown = text if len(text) <= limit else text[:limit] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shown
    )


def must_be_writable(path: Path, what: str = "JSON file") -> None:
    """Find out before the run, not after it, that a file cannot be written; leave none behind."""
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, strerror(EISDIR))
        if path.exists():
            path.touch()
        else:
            path.touch()
            path.unlink()  # an interrupted run has no result, not an empty one
    except OSError as error:
        raise ConformanceError(f"{what} {quoted(str(path))}: {error.strerror}") from None
