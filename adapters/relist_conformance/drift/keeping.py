"""Where approvals are kept, and who decides when."""

import getpass
import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger
from relist.errors import RelistError
from relist_conformance.errors import ConformanceError, quoted
from relist_mcp.drift import lockfile
from relist_mcp.drift.lockfile import Lock
from relist_mcp.drift.store import Store


def default_store() -> Path:
    """In the data folder of the user, on purpose not in the working directory.

    Approvals are a person's: were they read from where one stands, a repository that holds a store
    would bring its own approvals along. What a team shares is the lock file, which is reviewed.
    """
    if sys.platform == "win32":
        folder = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        folder = Path.home() / "Library" / "Application Support"
    else:
        folder = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(folder) / "relist" / "relist.db"


@contextmanager
def opened(path: Path | None, *, create: bool = False) -> Generator[Store]:
    """The store, while the block runs. What cannot be is a ConformanceError, in one line."""
    found = path or default_store()
    with plainly():
        if not create and not found.exists():
            raise ConformanceError(f"there is no store {quoted(str(found))}: see 'relist pin'")
        if create and path is None:
            found.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with Store(found, create=create) as store:
            yield store


def kept(path: Path | None) -> Ledger:
    """What the store holds; an empty ledger where there is none yet."""
    found = path or default_store()
    if not found.exists():
        return Ledger()
    with opened(path) as store:
        return store.ledger


def tell(store: Store, heard: LedgerInput) -> None:
    """Tell it. What cannot be is a ConformanceError."""
    with plainly():
        store.tell(heard)


@contextmanager
def plainly() -> Generator[None]:
    """Errors of ours are bad input, or a store that cannot be relied on: one line each."""
    try:
        yield
    except RelistError as error:
        raise ConformanceError(str(error)) from None


def read_lock(path: Path) -> Lock:
    """The lock file. Raises ConformanceError that names it, and the place in it."""
    try:
        return lockfile.read(path.read_bytes())
    except OSError as error:
        raise ConformanceError(f"lock file {quoted(str(path))}: {error.strerror}") from None
    except RelistError as error:
        raise ConformanceError(f"lock file {quoted(str(path))}: {error}") from None


def whoever() -> str:
    """The name of the user, for the history."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container without names
        return "somebody"


def now_ms() -> int:
    """The wall clock; nothing but the history depends on it."""
    return time.time_ns() // 1_000_000
