"""The ends: what connects a referee with a client. Memory, stdio and HTTP; all report alike.

An end turns bytes into decoded messages and back, and decides nothing. It tells what it hears in
the order in which it heard it, and performs outputs without waiting.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from attrs import field, frozen

from relist_conformance.outputs import ChannelKind, Finish, Reset, Send, Status

ChannelOutput = Status | Send | Finish | Reset


@frozen
class Opened:
    """A connection stands, or an HTTP exchange has begun."""

    channel: str
    kind: ChannelKind
    headers: Mapping[str, str] = field(factory=dict[str, str])


@frozen
class Received:
    """A message of the client: decoded JSON, or ``wire.Unreadable``."""

    channel: str
    message: object


@frozen
class Closed:
    """The client ended a channel, or it broke."""

    channel: str


Heard = Opened | Received | Closed
Hear = Callable[[Heard], Awaitable[None]]
"""Takes what an end heard; waits while too much is unread. Never raises once the play is over."""


class End(Protocol):
    """One play's side of a transport."""

    @property
    def target(self) -> Mapping[str, Any]:
        """The ``target`` of the driver's *connect* command."""
        ...

    def perform(self, output: ChannelOutput) -> None:
        """Do what the referee asks, in order, without waiting. Unknown channels are ignored."""
        ...
