"""Where a client first left what the reference machine allows.

The machine replays the history of a play and follows the client in all that is its choice: when it
lists and how often, whether it probes, listens or caches at all. The first thing that the client
sent, told its application, or left undone, which the machine would not have, is a *deviation*. It
explains findings and never changes a verdict. Order is judged and not the clock; where the history
does not say enough, nothing is said.
"""

from attrs import frozen

from relist.check.following import text_of
from relist.check.history import Event, History
from relist.check.offered import Offered
from relist.check.plainly import held
from relist.check.replayed import KIND_OF, Replayed
from relist.check.undone import Undone, by_fence, to_the_end
from relist.values import Kind


@frozen
class Deviation:
    """The first event in which a client left what the machine allows, and why.

    ``held``: what the machine held then, and what it would have shown or sent.
    """

    seq: int
    text: str
    held: str


def first_deviation(history: History) -> Deviation | None:
    """The first deviation of a history, None if there is none to be seen. Never raises.

    It ends where the driver is told to open a second connection: of what comes then, a history does
    not say which of them it belongs to.
    """
    replay = _Replay(history)
    connects = 0
    for event in history:
        connects += event.kind == "ask" and event.data.get("op") == "connect"
        if connects > 1:
            return None
        found = replay.take(event)
        if found is not None:
            return found
    return replay.end()


class _Replay:
    """The machine and what was told, one event after the other."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._replayed = Replayed(history)
        self._offered = Offered(history, self._replayed)

    def take(self, event: Event) -> Deviation | None:
        """Go on by one event."""
        method = text_of((event.message or {}).get("method"))
        text = self._replayed.take(event)
        if text is not None:
            return self._deviation(event.seq, text, KIND_OF.get(method))
        match event.kind:
            case "ask":
                self._offered.ask(event)
            case "step" if event.data.get("op") == "advance":
                self._offered.advances(event)
            case "in" if method == "tools/call":
                text, kind = self._offered.planned(event), Kind.TOOLS
                return None if text is None else self._deviation(event.seq, text, kind)
            case "answer":
                text = self._offered.take(event)
                about = KINDS_BY_NAME.get(text_of(event.data.get("kind")), Kind.TOOLS)
                return None if text is None else self._deviation(event.seq, text, about)
            case "fence" if event.data.get("passed") is True:
                return self._undone(by_fence(event, self._history, self._replayed, self._offered))
            case _:
                pass
        return None

    def end(self) -> Deviation | None:
        """What was left undone to the end."""
        return self._undone(to_the_end(self._history, self._replayed, self._offered))

    def _undone(self, undone: Undone | None) -> Deviation | None:
        if undone is None:
            return None
        return self._deviation(undone.seq, undone.text, undone.kind)

    def _deviation(self, seq: int, text: str, kind: Kind | None) -> Deviation:
        return Deviation(seq, text, held(self._replayed, kind))


KINDS_BY_NAME = {kind.value: kind for kind in Kind}
