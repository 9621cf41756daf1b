"""What the application does for the server: its handlers, and the capabilities that follow."""

from typing import Any

from attrs import frozen
from mcp.client.session import ClientSession
from mcp.client.session import ElicitationFnT as Elicitation
from mcp.client.session import ListRootsFnT as ListRoots
from mcp.client.session import LoggingFnT as Logging
from mcp.client.session import MessageHandlerFnT as MessageHandler
from mcp.client.session import SamplingFnT as Sampling

from relist_mcp.tap import Tap


@frozen(kw_only=True)
class Handlers:
    """The callbacks of an `mcp` ``ClientSession``, by what they serve. None: not served.

    ``messages`` gets every notification but those that the catalogs hear themselves.
    """

    sampling: Sampling | None = None
    elicitation: Elicitation | None = None
    roots: ListRoots | None = None
    logging: Logging | None = None
    messages: MessageHandler | None = None

    def capabilities(self) -> dict[str, Any]:
        """What the client declares: only what somebody serves. Rule: LIFE-16."""
        served: dict[str, Any] = {}
        if self.sampling is not None:
            served["sampling"] = {}
        if self.elicitation is not None:
            served["elicitation"] = {"form": {}, "url": {}}
        if self.roots is not None:
            served["roots"] = {}
        return served

    def session(self, tap: Tap) -> ClientSession:
        """A session of the SDK that serves with these."""
        return ClientSession(
            dispatcher=tap,
            sampling_callback=self.sampling,
            elicitation_callback=self.elicitation,
            list_roots_callback=self.roots,
            logging_callback=self.logging,
            message_handler=self.messages,
        )


NO_HANDLERS = Handlers()
