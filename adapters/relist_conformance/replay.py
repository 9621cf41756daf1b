"""``relist replay``: what this version of the law makes of a recorded session."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from relist.check.trace import Replayed, replay, stood
from relist.session import Session, new_session
from relist.values import KINDS
from relist_conformance.errors import plain
from relist_conformance.recorder import Recorded, recorded
from relist_conformance.report.lines import count, lines_of
from relist_conformance.report.live import Printed
from relist_mcp.fold import Seen, fold
from relist_mcp.loop import Fed

_SHOWN_MAX = 600  # characters of an input or a difference
_BROKEN_MAX = 20  # broken promises that are shown; all are counted


def run_replay(path: Path, out: Console, err: Console, *, strict: bool) -> int:
    """Replay this file and print what happened. The exit code.

    0 every promise holds; 1 one is broken, or with ``strict`` something is otherwise than recorded.
    Raises ConformanceError for whatever is no trace, before anything is printed.
    """
    with recorded(path) as trace:
        for _ in trace.steps():
            pass  # what is wrong with the file is told first, and alone
        judged = _Judged(new_session(trace.header.wire, trace.header.partition))
        printed = Printed(lambda text: out.print(text, soft_wrap=True))
        for step in replay(trace.header, trace.steps()):
            judged.add(step, printed)
        printed.flush()
        for text in _verdict(trace, judged):
            out.print(text, soft_wrap=True)
        if trace.cut:
            err.print("relist: the last line has no end and was left out", soft_wrap=True)
    return 1 if judged.broken or (strict and judged.differing) else 0


class _Judged:
    """What has come of the replay so far."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.steps = 0
        self.broken: list[str] = []
        self.differing: list[str] = []
        self._seen = Seen()

    def add(self, step: Replayed, printed: Printed) -> None:
        """One more step: print what happened in it, and keep what is wrong."""
        self.steps = step.number
        if step.observed is not None:
            whole = step.observed.whole
            self.session = whole.after
            fed = Fed(step.heard, whole.before, whole.after, whole.effects)
            self._seen, events = fold(self._seen, fed)
            for event in events:
                for line in lines_of(event):
                    printed(line)
        self.broken += [_told(step, f"broke {one}") for one in step.broken]
        if step.differs:
            self.differing.append(_told(step, step.differs))


def _told(step: Replayed, what: str) -> str:
    heard = plain(repr(step.heard), _SHOWN_MAX)
    return f"step {step.number}, {heard}\n  {plain(what, _SHOWN_MAX)}"


def _verdict(trace: Recorded, judged: _Judged) -> Iterator[str]:
    yield ""
    yield from _end(trace, judged.session)
    yield ""
    by = f"relist {plain(trace.header.relist)}"
    if judged.differing:
        some = f"{len(judged.differing)} of {judged.steps} steps"
        yield f"{some} differ from the recording by {by}; the first:"
        yield judged.differing[0]
    else:
        yield f"all {judged.steps} steps are as {by} recorded them"
    yield from judged.broken[:_BROKEN_MAX]
    if judged.broken:
        yield f"BROKEN: promises, {len(judged.broken)} times"
    else:
        yield "holds: no promise is broken"


def _end(trace: Recorded, session: Session) -> Iterator[str]:
    """The state that everything came to."""
    stands = stood(session, trace.header.policy)
    yield f"at the end: link {stands.link.value}, push {stands.push.value}"
    for kind in KINDS:
        catalog = session.catalog(kind)
        told = [f"  {kind.value} {catalog.phase.value}"]
        if catalog.snapshot is not None:
            entries = count(len(catalog.snapshot.items), "entry")
            told += [f"generation {catalog.generation}", entries]
        if catalog.doubt is not None:
            told.append(f"doubted: {catalog.doubt.value}")
        yield ", ".join(told)
