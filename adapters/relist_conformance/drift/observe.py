"""One complete look at a real server, by the live client. What is not complete proves nothing."""

from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO

import anyio
from attrs import evolve

from relist.drift import inputs as i
from relist.drift.inputs import Observation
from relist.drift.values import ServerIdentity, Subject
from relist.frozen import frozen
from relist.machine import Hit, Reading
from relist.values import KINDS, Kind, LinkPhase
from relist_conformance.drift.target import Asked
from relist_conformance.errors import quoted
from relist_mcp.catalogs import Catalogs
from relist_mcp.credentials import needed
from relist_mcp.drift.definitions import SUBJECTS, Reader
from relist_mcp.targets import Http, Stdio
from relist_mcp.view import ENDED

_TRIES = 2
_LOG_BYTES = 4096


@frozen
class Observed:
    """What was seen of each kind; ``undeclared`` are those that the server does not have."""

    inventories: tuple[i.InventoryTaken, ...]
    failures: tuple[i.ObservationFailed, ...]
    undeclared: frozenset[Subject]

    def all(self) -> Iterator[Observation]:
        """Everything that a ledger is told."""
        yield from self.inventories
        yield from self.failures


async def observe(asked: Asked, server: ServerIdentity, at_ms: int) -> Observed:
    """Connect, list every kind once and completely, and leave. Rule: DRIFT-32, DRIFT-33.

    Raises ConformanceError for a target that cannot be.
    """
    taken: list[i.InventoryTaken] = []
    undeclared: set[Subject] = set()
    missing = dict.fromkeys(KINDS, f"no answer within {asked.timeout_s:g} s")
    credentials = asked.credentials()
    with TemporaryFile() as log:
        target = _quiet(asked.target(), log)
        async with Catalogs.connect(target, credentials=credentials) as catalogs:
            with anyio.move_on_after(asked.timeout_s):
                for kind in KINDS:
                    reading = await _listed(catalogs, kind)
                    if reading.hit is Hit.UNSUPPORTED:
                        undeclared.add(SUBJECTS[kind])
                    elif reading.snapshot is not None and _proves(reading):
                        reader = Reader(server.id, kind)
                        taken.append(
                            reader.inventory(server, reading.snapshot, asked.partition, at_ms)
                        )
                    elif _is_away(catalogs):
                        missing = dict.fromkeys(missing, _why(catalogs, log))
                        break
                    else:
                        missing[kind] = _why(catalogs, log)
                        continue
                    del missing[kind]
    failures = (
        i.ObservationFailed(server.id, SUBJECTS[kind], why, at_ms) for kind, why in missing.items()
    )
    return Observed(tuple(taken), tuple(failures), frozenset(undeclared))


def _quiet(target: Stdio | Http, log: IO[bytes]) -> Stdio | Http:
    """What a process writes to its stderr goes to a file, and to nobody's terminal."""
    return evolve(target, errlog=log) if isinstance(target, Stdio) else target


async def _listed(catalogs: Catalogs, kind: Kind) -> Reading:
    """The list; asked for again a few times where a walk was disturbed, or failed."""
    reading = await catalogs.get(kind)
    for _ in range(_TRIES):
        if reading.hit is Hit.UNSUPPORTED or _proves(reading) or _is_away(catalogs):
            break
        reading = await catalogs.refresh(kind)
    return reading


def _is_away(catalogs: Catalogs) -> bool:
    """Whether it makes no sense to ask on: nobody is there, or they do not let us in."""
    link = catalogs.session.link
    return link.phase is not LinkPhase.LIVE and (link.failures >= _TRIES or link.phase in ENDED)


def _proves(reading: Reading) -> bool:
    complete = reading.hit in (Hit.HIT, Hit.EXPIRED)
    return complete and reading.snapshot is not None and reading.snapshot.clean


def _why(catalogs: Catalogs, log: IO[bytes]) -> str:
    if needed(catalogs.session) is not None:
        return "its credentials do not do"
    if catalogs.session.link.phase is LinkPhase.LIVE:
        return "no complete and undisturbed list"
    last = _last_line(log)
    return "no connection" + (f"; the last line on its stderr: {quoted(last)}" if last else "")


def _last_line(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, 2) - _LOG_BYTES))
    lines = log.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")
