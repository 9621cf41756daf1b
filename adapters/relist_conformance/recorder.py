"""Writing a trace while a live client runs, and reading it again.

Line by line, so that whoever kills the watcher loses at most the line that is being written.
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO, TypeVar

from relist.check.codec import Malformed
from relist.check.trace import Header, Step, header_line, read_header, read_step, step_line
from relist.policy import Policy
from relist.values import Wire
from relist_conformance.errors import ConformanceError, quoted
from relist_mcp.loop import Fed

LINE_MAX = 257 * 1024 * 1024  # bytes: a page may have 64 MiB, and JSON in JSON doubles some of it
_T = TypeVar("_T")
_OURS_ALONE = 0o600  # lists may be private


class Recorder:
    """An observer of the loop that writes each step. Raises OSError where it cannot."""

    def __init__(self, file: TextIO, policy: Policy) -> None:
        self._file = file
        self._policy = policy

    def __call__(self, fed: Fed) -> None:
        """See ``relist_mcp.loop.Observer``."""
        self._file.write(step_line(fed.heard, fed.effects, fed.after, self._policy) + "\n")


@contextmanager
def recording(path: Path, policy: Policy, wire: Wire, partition: str) -> Generator[Recorder]:
    """A recorder that writes this file anew, which nobody else may read.

    Raises ConformanceError for an OSError, also for one of the block.
    """
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OURS_ALONE)
        with open(opened, "w", encoding="ascii", buffering=1, newline="\n") as file:
            file.write(header_line(policy, wire, partition) + "\n")
            yield Recorder(file, policy)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ConformanceError(f"record file {quoted(str(path))}: {error.strerror}") from None


class Recorded:
    """The trace in a file: its header, and its steps as often as they are wanted.

    ``cut``: the last line has no end and is left out, as when the watcher was killed. Raises
    ConformanceError, which names the line, for whatever is no trace.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._where = f"trace file {quoted(str(path))}"
        self._file = file
        self.cut = False
        first = file.readline(LINE_MAX + 1)
        if not first:
            raise ConformanceError(f"{self._where} is empty")
        self.header: Header = self._read(read_header, first, 1)
        self._begin = file.tell()

    def steps(self) -> Iterator[Step]:
        """All steps, in order."""
        self._file.seek(self._begin)
        number = 1
        while line := self._file.readline(LINE_MAX + 1):
            number += 1
            try:
                yield self._read(read_step, line, number)
            except ConformanceError:
                if line.endswith(b"\n") or len(line) > LINE_MAX:
                    raise
                self.cut = True

    def _read(self, read: Callable[[bytes], _T], line: bytes, number: int) -> _T:
        where = f"{self._where}, line {number}"
        if len(line) > LINE_MAX:
            raise ConformanceError(f"{where} is longer than {LINE_MAX} bytes")
        try:
            return read(line)
        except Malformed as error:
            raise ConformanceError(f"{where}: {error}") from None


@contextmanager
def recorded(path: Path) -> Generator[Recorded]:
    """The trace in this file. Raises ConformanceError if it cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConformanceError(f"trace file {quoted(str(path))}: {error.strerror}") from None
    with file:
        yield Recorded(path, file)
