"""Where a ledger is kept: one SQLite file. What is told is on the disk before it is answered.

The history only grows, and each of its lines seals all before it. The rest is the ledger as it is,
row by row, under one sum: a row that was lost, doubled or altered is noticed when the file is
opened. That finds damage; whoever may write the file can forge it, as with any file of theirs.
"""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from types import TracebackType
from typing import NamedTuple

from relist.drift.classify import Relate
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger, LedgerEffect, LedgerStep, Record
from relist.drift.receive import receive
from relist.drift.values import CapabilityId, Definition
from relist.errors import RelistError
from relist_mcp.drift import schemas
from relist_mcp.drift.codec import (
    definition_json,
    definition_of,
    entry_json,
    entry_of,
    packed,
    unpacked,
)
from relist_mcp.drift.rows import Row, differing, kept_json, kept_of, ledger_of

APPLICATION_ID = 0x726C7374  # "rlst": the file is ours
FORMAT = 1
BUSY_MAX_S = 30.0  # how long another process may write
_SUM_MOD = 2**256
_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
CREATE TABLE entries (number INTEGER PRIMARY KEY, line BLOB NOT NULL, seal TEXT NOT NULL);
CREATE TABLE definitions (address TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE parts (number INTEGER PRIMARY KEY, place BLOB NOT NULL UNIQUE, value BLOB NOT NULL);
CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    entries INTEGER NOT NULL, seal TEXT NOT NULL, total TEXT NOT NULL
);
INSERT INTO head VALUES (1, 0, '', '{0:064x}');
CREATE TRIGGER entries_grow BEFORE INSERT ON entries
WHEN new.number <> (SELECT coalesce(max(number), 0) + 1 FROM entries)
BEGIN SELECT raise(ABORT, 'the history only grows'); END;
CREATE TRIGGER entries_stand BEFORE UPDATE ON entries
BEGIN SELECT raise(ABORT, 'the history only grows'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
BEGIN SELECT raise(ABORT, 'the history only grows'); END;
CREATE TRIGGER definitions_stand BEFORE UPDATE ON definitions
BEGIN SELECT raise(ABORT, 'definitions are kept'); END;
CREATE TRIGGER definitions_stay BEFORE DELETE ON definitions
BEGIN SELECT raise(ABORT, 'definitions are kept'); END;
"""


class StoreError(RelistError):
    """The store cannot be read or written, or is not whole: so nothing is known, nothing shown."""


class _Head(NamedTuple):
    """What tells one state of a store from another: it changes with whatever is written."""

    entries: int
    seal: str
    total: str


class Store:
    """A ledger in a file. May be used by several threads, and the file by several processes.

    Raises StoreError wherever it cannot vouch for what it has; ``ledger`` then raises it as well,
    until a later call finds all in order.
    """

    def __init__(self, path: Path, *, create: bool = True, relate: Relate = schemas.relate) -> None:
        self.path = path
        self._relate = relate
        self._lock = threading.RLock()
        self._ledger: Ledger | None = None
        self._head = _Head(0, "", "")
        self._definitions: dict[tuple[str, CapabilityId], Definition] = {}
        if create:
            _create(path)
        with self._guarded():
            self._file = path.stat().st_ino
            self._db = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_MAX_S,
                isolation_level=None,
                check_same_thread=False,
            )
        try:
            self._open()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._db.close()

    @property
    def ledger(self) -> Ledger:
        """The ledger as it was read or written last. Raises StoreError where none can be had."""
        ledger = self._ledger
        if ledger is None:
            raise StoreError(f"store {self.path}: nothing is known since an earlier failure")
        return ledger

    def tell(self, heard: LedgerInput) -> LedgerStep:
        """One step of the ledger, kept: on the disk, all or nothing, before this returns.

        What other processes wrote meanwhile is taken in first. Raises what ``receive`` does, with
        nothing changed. Rule: DRIFT-19, DRIFT-43.
        """
        with self._lock, self._transaction("IMMEDIATE"):
            with self._guarded():
                self._catch_up()
            before = self.ledger
            step = receive(before, heard, self._relate)
            with self._guarded():
                head = self._write(before, step)
        # Only now is it so: whatever failed before leaves ledger and file as they were.
        self._ledger, self._head = step.state, head
        return step

    def changed(self) -> bool:
        """Take in what other processes wrote; whether there was anything."""
        with self._lock, self._transaction("DEFERRED"), self._guarded():
            return self._catch_up()

    def entries(self, after: int = 0) -> Iterator[Record]:
        """The history beyond this number, in order, each with the definition it is about."""
        with self._lock, self._guarded():
            rows = self._db.execute(
                "SELECT line FROM entries WHERE number > ? ORDER BY number", (after,)
            )
            lines = [self._record(line) for (line,) in rows.fetchall()]
        yield from lines

    # --- opening ----------------------------------------------------------------------------------

    def _open(self) -> None:
        with self._guarded():
            self._check_kind()
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "trusted_schema = OFF"):
                self._db.execute(f"PRAGMA {pragma}").fetchall()
            with self._transaction("DEFERRED"):
                for (found,) in self._db.execute("PRAGMA quick_check(1)"):
                    if found != "ok":
                        raise ValueError("the file is damaged")
                self._catch_up()
                self._check_history()

    def _check_kind(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise StoreError(f"store {self.path}: this is no store of relist")
        if version > FORMAT:
            raise StoreError(
                f"store {self.path}: its format {version} is newer than this version, which reads"
                f" {FORMAT}"
            )
        if version != FORMAT:
            raise ValueError(f"there is no format {version}")

    def _check_history(self) -> None:
        seal, count = "", 0
        for number, line, kept in self._db.execute("SELECT * FROM entries ORDER BY number"):
            seal, count = _sealed(seal, line), count + 1
            if (number, kept) != (count, seal):
                raise ValueError(f"line {number} of the history is damaged")
        if (count, seal) != self._head[:2]:
            raise ValueError("the history ends too early")

    # --- reading ----------------------------------------------------------------------------------

    def _catch_up(self) -> bool:
        if self.path.stat().st_ino != self._file:
            raise ValueError("the file was replaced")
        found = self._db.execute("SELECT entries, seal, total FROM head").fetchone()
        if found is None:
            raise ValueError("its head is missing")
        head = _Head(*found)
        if self._ledger is not None and head == self._head:
            return False
        parts = self._db.execute("SELECT place, value FROM parts ORDER BY number").fetchall()
        if f"{sum(map(_weight, parts)) % _SUM_MOD:064x}" != head.total:
            raise ValueError("rows of the ledger are missing or damaged")
        known, self._definitions = self._definitions, {}
        rows = (Row(tuple(unpacked(place)), unpacked(value)) for place, value in parts)

        def fetch(address: str, upstream: CapabilityId) -> Definition:
            at = (address, upstream)
            return self._definitions.setdefault(at, known.get(at) or self._definition(*at))

        self._ledger, self._head = ledger_of(rows, head.entries, fetch), head
        return True

    def _definition(self, address: str, upstream: CapabilityId) -> Definition:
        found = self._db.execute("SELECT content FROM definitions WHERE address = ?", (address,))
        row = found.fetchone()
        if row is None or sha256(row[0]).hexdigest() != address:
            raise ValueError(f"the definition {address} is missing or damaged")
        return definition_of(unpacked(row[0]), upstream)

    def _record(self, line: bytes) -> Record:
        data = unpacked(line)
        kept = data.pop("definition", None)
        return Record(entry_of(data), None if kept is None else kept_of(kept, self._definition))

    # --- writing ----------------------------------------------------------------------------------

    def _write(self, before: Ledger, step: LedgerStep) -> _Head:
        changes = [
            (packed(row.place), None if row.value is None else packed(row.value))
            for row in differing(before, step.state, self._keep)
        ]
        seal = self._append(step.effects)
        total = self._put(changes)
        head = _Head(step.state.entries, seal, f"{total % _SUM_MOD:064x}")
        if head != self._head:
            self._db.execute("UPDATE head SET entries = ?, seal = ?, total = ?", head)
        return head

    def _append(self, effects: Iterable[LedgerEffect]) -> str:
        seal = self._head.seal
        for effect in effects:
            if isinstance(effect, Record):
                data = entry_json(effect.entry)
                if effect.definition is not None:
                    data["definition"] = kept_json(effect.definition, self._keep)
                line = packed(data)
                seal = _sealed(seal, line)
                self._db.execute(
                    "INSERT INTO entries VALUES (?, ?, ?)", (effect.entry.number, line, seal)
                )
        return seal

    def _put(self, changes: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write, and return the new sum of all rows."""
        total = int(self._head.total, 16)
        for place, value in changes:
            held = self._db.execute("SELECT value FROM parts WHERE place = ?", (place,)).fetchone()
            if held is not None:
                total -= _weight((place, held[0]))
            if value is None:
                self._db.execute("DELETE FROM parts WHERE place = ?", (place,))
                continue
            total += _weight((place, value))
            self._db.execute(
                "INSERT INTO parts (place, value) VALUES (?, ?)"
                " ON CONFLICT (place) DO UPDATE SET value = excluded.value",
                (place, value),
            )
        return total

    def _keep(self, definition: Definition) -> str:
        content = packed(definition_json(definition))
        address = sha256(content).hexdigest()
        self._db.execute("INSERT OR IGNORE INTO definitions VALUES (?, ?)", (address, content))
        return address

    @contextmanager
    def _transaction(self, how: str) -> Generator[None]:
        with self._guarded():
            self._db.execute(f"BEGIN {how}")
        try:
            yield
            with self._guarded():
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                with self._guarded():
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _guarded(self) -> Generator[None]:
        """What goes wrong with the file is a StoreError, and from then on nothing is known."""
        try:
            yield
        except StoreError:
            self._forget()
            raise
        except (sqlite3.Error, OSError, ArithmeticError, LookupError, TypeError, ValueError) as e:
            self._forget()
            raise StoreError(f"store {self.path}: {_why(e)}") from e

    def _forget(self) -> None:
        self._ledger, self._definitions = None, {}


def _create(path: Path) -> None:
    """Make an empty store unless there is a file: whole or not at all, whoever else does the same.

    A file that is there and empty is no new store: something made it so.
    """
    try:
        if path.exists():
            return
        handle, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise StoreError(f"store {path}: {_why(error)}") from error
    os.close(handle)
    try:
        db = sqlite3.connect(name)
        try:
            db.executescript(_SCHEMA)
        finally:
            db.close()
        os.link(name, path)
        _sync_folder(path.parent)
    except FileExistsError:
        pass  # somebody else was faster
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"store {path}: {_why(error)}") from error
    finally:
        os.unlink(name)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on the disk, where folders can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, KeyError | IndexError):
        return f"{error} is missing, or not known"
    return str(error)


def _sealed(seal: str, line: bytes) -> str:
    return sha256(f"{seal}\n".encode() + line).hexdigest()


def _weight(row: tuple[bytes, bytes]) -> int:
    place, value = row
    digest = sha256(len(place).to_bytes(8, "big") + place + value).digest()
    return int.from_bytes(digest, "big")
