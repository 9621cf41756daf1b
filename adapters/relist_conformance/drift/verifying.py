"""``relist verify``: whether a server is as the lock file says. For CI, so nobody is asked.

Drift is what would have to be reviewed if exactly the locked definitions had been approved; no
policy of a profile lets anything through here.
"""

from functools import reduce
from pathlib import Path

import anyio
from attrs import evolve, frozen

from relist.drift import inputs as i
from relist.drift.ledger import Ledger
from relist.drift.policy import chosen
from relist.drift.receive import receive
from relist.drift.review import reviews
from relist.drift.values import Review, ServerIdentity, ServerSelection, Subject, Why
from relist_conformance.drift import names, sarif, views
from relist_conformance.drift import told as t
from relist_conformance.drift.acting import Said
from relist_conformance.drift.keeping import now_ms, plainly, read_lock
from relist_conformance.drift.observe import Observed, observe
from relist_conformance.drift.target import Asked, identity, must_be_known
from relist_conformance.errors import must_be_writable
from relist_mcp.drift.lockfile import Lock, Locked, expected
from relist_mcp.drift.schemas import relate

AS_LOCKED, DRIFT, NOT_OBSERVED = 0, 1, 3


@frozen
class Verdict:
    """What is otherwise, and what nobody could see."""

    server: ServerIdentity
    ledgers: tuple[Ledger, ...]
    drift: tuple[Review, ...]
    unseen: tuple[i.ObservationFailed, ...]

    @property
    def code(self) -> int:
        """The exit code: what has drifted has, whatever else could not be seen."""
        if self.drift:
            return DRIFT
        return NOT_OBSERVED if self.unseen else AS_LOCKED


def verify(said: Said, asked: Asked, lock_file: Path, report: Path | None) -> int:
    """Compare, and say what is otherwise."""
    lock = read_lock(lock_file)
    if report is not None:
        must_be_writable(report)
    server = _server(asked, lock)
    observed = anyio.run(observe, asked, server, now_ms())
    with plainly():
        verdict = judge(lock, server, observed, asked.partition)
    if report is not None:
        report.write_text(t.text(sarif.log(verdict.drift, verdict.unseen, lock_file)) + "\n")
    _say(said, verdict)
    return verdict.code


def _server(asked: Asked, lock: Lock) -> ServerIdentity:
    """Who it should be: a lock of one server is of no other."""
    alone = lock.servers[0].id if len(lock.servers) == 1 else None
    found = identity(evolve(asked, id=asked.id or alone), lock.servers)
    must_be_known(found, lock.servers)
    return found


def judge(lock: Lock, server: ServerIdentity, observed: Observed, partition: str) -> Verdict:
    """What is otherwise than locked, for each consumer. Pure."""
    ledgers: list[Ledger] = []
    drift: list[Review] = []
    unseen: dict[Subject, i.ObservationFailed] = {}
    for locked in lock.consumers:
        ledger = expected(lock, locked, partition)
        ledger = reduce(lambda now, heard: receive(now, heard).state, observed.inventories, ledger)
        drift += (one for one in reviews(ledger, relate) if one.ref.server == server.id)
        ledgers.append(ledger)
        unseen |= {one.subject: one for one in _unseen(locked, server, observed)}
    return Verdict(server, tuple(ledgers), tuple(_once(drift)), tuple(unseen.values()))


def _unseen(
    locked: Locked, server: ServerIdentity, observed: Observed
) -> list[i.ObservationFailed]:
    """The kinds that matter to this consumer, and were not listed completely."""
    held = {ref.subject for ref in locked.approved if ref.server == server.id}
    whole = {
        subject
        for one in locked.profile.selections
        if isinstance(one, ServerSelection) and one.server == server.id
        for subject in one.subjects
    }
    failed = [one for one in observed.failures if one.subject in held | whole]
    gone = held & observed.undeclared
    why = "the server does not offer them now"
    return [*failed, *(i.ObservationFailed(server.id, one, why, 0) for one in gone)]


def _once(drift: list[Review]) -> list[Review]:
    """A server in doubt is one finding for each consumer, whatever it offers."""
    found: dict[object, Review] = {}
    for one in drift:
        about = one.ref.server if one.why is Why.SERVER else one.ref
        found.setdefault((one.consumer, about), one)
    return list(found.values())


def _say(said: Said, verdict: Verdict) -> None:
    by_consumer = {name: ledger for ledger in verdict.ledgers for name in ledger.profiles}
    for one in verdict.drift:
        ledger = by_consumer[one.consumer]
        if said.json:
            said.out.print(t.text(t.review_told(ledger, one)), soft_wrap=True)
        else:
            said.print(f"for {names.named(one.consumer)}:")
            views.show(said.out, views.review_lines(ledger, one))
    for failure in verdict.unseen:
        line = f"relist: {failure.subject.value}s not observed: {names.said(failure.why)}"
        said.err.print(line, soft_wrap=True)
    counted = sum(
        chosen(ledger.profiles[name], ref) is not None
        for name, ledger in by_consumer.items()
        for ref in ledger.publications[name].manifest.items
        if ref.server == verdict.server.id
    )
    said.print(f"{counted} as locked, {len(verdict.drift)} otherwise")
