"""What of a history an expectation looks at: its window, its fence, the requests and answers meant.

Pure. A history may be a part of one: events are told by ``seq``, never by their place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from relist.check import expect as x
from relist.check.history import Event, History, RequestMatch, mapping, marked

_SHOWN_ITEMS = 12
_SHOWN_CHARS = 60


@frozen
class Unknown(Exception):
    """The history cannot decide this expectation; ``blocking`` makes the verdict inconclusive."""

    reason: str
    blocking: bool = True


def window(expectation: x.Expectation, history: History) -> tuple[int, float]:
    """The numbers between which an event counts. Raises ``Unknown`` without such marks."""
    bounds: list[int | None] = []
    for name in (expectation.since, expectation.before):
        seq = None if name is None else marked(history, name)
        if name is not None and seq is None:
            raise Unknown(f"the run did not come to '{name}'")
        bounds.append(seq)
    since, before = bounds
    return (-1 if since is None else since), (float("inf") if before is None else before)


def need_fence(expectation: x.Expectation, history: History) -> int:
    """The last fence in the window: what did not come by then is absent."""
    since, before = window(expectation, history)
    fence = max(
        (
            event.seq
            for event in history
            if event.kind == "fence" and event.data.get("passed") and since < event.seq < before
        ),
        default=None,
    )
    if fence is None:
        raise Unknown("no fence was passed after which a request could be called absent")
    return fence


def deadline(expectation: x.Expectation, history: History, seen: Sequence[int]) -> int:
    """The last event of the window: what is ``timed`` had until then, after all that was ``seen``.

    Raises ``Unknown`` where nothing came after what was seen.
    """
    since, before = window(expectation, history)
    last = max((event.seq for event in history if since < event.seq < before), default=-1)
    if last <= max(seen, default=-1):
        raise Unknown("the run ended before there was time")
    return last


def matching(match: RequestMatch, expectation: x.Expectation, history: History) -> list[Event]:
    """The requests and notifications of the client that are meant; HTTP exchanges likewise."""
    since, before = window(expectation, history)
    found: list[Event] = []
    opened: dict[str, Event] = {}
    for event in history:
        message: Mapping[str, Any] = event.message or {}
        if event.kind == "open":
            opened[event.channel] = event
            kind = str(event.data.get("channel_kind"))
            message = {"method": kind.upper()} if kind in ("get", "delete") else {}
        elif event.kind != "in":
            continue
        told: Mapping[str, Any] = opened[event.channel].data if event.channel in opened else {}
        headers, principal = mapping(told.get("headers")) or {}, str(told.get("principal", ""))
        page = event.data.get("page")
        if not since < event.seq < before:
            continue
        if "cut" in event.data and evolve(match, params={}, cursor=None).matches(
            message, page, headers, principal
        ):
            need_whole(event, match.params or match.cursor)
        if match.matches(message, page, headers, principal):
            found.append(event)
    return found


def need_whole(event: Event, compared: object = True) -> None:
    """Raise ``Unknown`` where entries of this event are missing that would have to be looked at.

    What is missing of a text makes no difference: it is not equal to any that is expected.
    """
    if compared and "cut" in event.data:
        raise Unknown(f"event {event.seq} was too long to be kept, and what it held matters")


def sent_as(event: Event) -> str:
    """What a request or notification asks for, in one word."""
    return shown((str((event.message or {}).get("method", event.data.get("channel_kind"))),))


def said(
    expectation: x.Answered | x.NoDuplicates | x.Opinion | x.Outcome, history: History
) -> list[Event]:
    """What the driver answered under this name. Raises ``Unknown`` where entries are missing."""
    since, before = window(expectation, history)
    answers = [
        event
        for event in history
        if event.kind == "answer"
        and since < event.seq < before
        and event.data.get("as") == expectation.of
    ]
    for answer in answers:
        need_whole(answer)
    return answers


def labels(answer: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """What was offered, as ``name@version``: items, or the one text that was read; or None."""
    text, items = ((answer or {}).get(key) for key in ("text", "items"))
    if isinstance(text, str):
        return (text,)
    return None if items is None else tuple(_label(item) for item in items)


def _label(item: Mapping[str, Any]) -> str:
    name, description = str(item.get("name")), str(item.get("description"))
    return description if description.rpartition("@")[0] == name else f"{name} ({description})"


def shown(items: Sequence[str] | None) -> str:
    """Items for one line of text: bounded, and escaped because a peer wrote them."""
    if items is None:
        return "no list"
    texts = [
        text if text.isprintable() else ascii(text)
        for text in (item[:_SHOWN_CHARS] for item in items[:_SHOWN_ITEMS])
    ]
    more = f", and {len(items) - _SHOWN_ITEMS} more" if len(items) > _SHOWN_ITEMS else ""
    return "[" + ", ".join(texts) + more + "]"
