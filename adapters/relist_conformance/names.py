"""What the schema of cases cannot say: names that refer to nothing, and steps with no place."""

from collections.abc import Iterable, Iterator

import attrs

from relist.check.expect import Answered, Expectation, NoDuplicates, Opinion, Outcome
from relist_conformance import steps as s

Mistake = tuple[str, str, str]
"""Field, value, and what is wrong with it."""

_HTTP = "needs transports: [http]"


def mistakes(
    steps: Iterable[s.Step], expect: Iterable[Expectation], transports: tuple[str, ...]
) -> Iterator[Mistake]:
    """All mistakes, in the order of the case."""
    names = _Names()
    for index, step in enumerate(steps):
        yield from names.take(f"steps/{index}", step)
        yield from _placed(f"steps/{index}", step, transports)
    for index, expectation in enumerate(expect):
        for field in ("since", "before", "given"):
            value = getattr(expectation, field)
            if value is not None and value not in names.marks:
                yield f"expect/{index}/*/{field}", value, "is no mark of this case"
        if isinstance(expectation, Answered | NoDuplicates | Opinion | Outcome) and (
            expectation.of not in names.answers
        ):
            yield f"expect/{index}/*/of", expectation.of, "is no answer of this case"


def _placed(where: str, step: s.Step, transports: tuple[str, ...]) -> Iterator[Mistake]:
    """Steps that only HTTP can perform must not be played elsewhere."""
    played = [one for one in transports if step.transports is None or one in step.transports]
    if played == ["http"]:
        return
    match step:
        case s.Answer() if step.content.status is not None:
            yield (
                f"{where}/answer/status",
                str(step.content.status.code),
                "needs transports: [http]",
            )
        case s.Answer() if step.delivery.stream is not None:
            yield f"{where}/answer/stream", step.delivery.stream.begin, _HTTP
        case s.Answer() if step.request.method in ("GET", "DELETE"):
            yield f"{where}/answer/request", step.request.method, _HTTP
        case s.Send() if step.raw:
            yield f"{where}/send/raw", "true", _HTTP
        case s.Cut() if step.what != "connection":
            yield f"{where}/cut/what", step.what, _HTTP
        case s.EndSubscriptions() if step.how == "closed":
            yield f"{where}/end_subscriptions/how", step.how, _HTTP
        case _:
            pass


@attrs.define
class _Names:
    """The names that the steps of a case give, in step order."""

    answers: set[str | None] = attrs.field(factory=set[str | None])
    marks: set[str | None] = attrs.field(factory=set[str | None])
    connections: set[str] = attrs.field(factory=set[str])
    holds: set[str | None] = attrs.field(factory=set[str | None])

    def take(self, where: str, step: s.Step) -> Iterator[Mistake]:
        """Learn the names of one step; those it uses have to be known."""
        if step.given is not None and step.given not in self.marks:
            yield f"{where}/when/given", step.given, "is no earlier mark"
        match step:
            case s.Need() | s.Believe() | s.Refresh() | s.Call() | s.Read() | s.GetPrompt():
                self.answers.add(step.name)
            case s.Await() | s.Excuse():
                if step.since is not None and step.since not in self.marks:
                    yield f"{where}/*/since", step.since, "is no earlier mark"
            case s.Connect():
                self.connections.add(step.name)
            case s.Turn() if step.to not in self.connections:
                yield f"{where}/turn/to", step.to, "is no earlier connection"
            case s.Mark():
                self.marks.add(step.name)
            case s.Answer():
                self.holds.add(step.delivery.hold)
            case s.Release() if step.name not in self.holds:
                yield f"{where}/release/name", step.name, "is held by no earlier step"
            case _:
                pass
        if isinstance(step, s.Await):
            self.marks.add(step.name)
            self.answers |= {step.name} if step.need is not None else set[str | None]()
