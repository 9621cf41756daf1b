"""What an answer of a script can say in the place of the well-behaved one. Values only."""

from collections.abc import Mapping

from attrs import field, frozen


@frozen(kw_only=True)
class Page:
    """A page that takes the place of the served one. ``{n}`` in ``next`` counts the events."""

    items: tuple[str, ...]
    next: str | None = None


@frozen(kw_only=True)
class Status:
    """An HTTP answer that carries no message of MCP."""

    code: int
    headers: Mapping[str, str] = field(factory=dict[str, str])
    body: str = ""


@frozen(kw_only=True)
class Error:
    """A JSON-RPC error; ``http`` is the status where HTTP carries it alone."""

    code: int
    message: str
    data: object = None
    http: int = 200


@frozen(kw_only=True)
class Fill:
    """What is added to a list: so many items, each this long and with a schema this deep."""

    items: int = 1
    chars: int = 10
    depth: int = 1
