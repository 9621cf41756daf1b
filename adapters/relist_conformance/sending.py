"""How a server sends: on a pipe, as one HTTP answer, or as events of a stream. No I/O."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from relist_conformance import wire
from relist_conformance.history import Recorder
from relist_conformance.outputs import JSON, SSE, Finish, Output, Reset, Send, Status
from relist_conformance.rules import Answer, Bare, Channel, Request


class Sender(ABC):
    """The channels of a server; each message is recorded as it is sent."""

    def __init__(self, recorder: Recorder, outputs: list[Output]) -> None:
        self._recorder = recorder
        self._channels: dict[str, Channel] = {}
        self._outputs = outputs

    @abstractmethod
    def _dropped(self, channel: Channel) -> None:
        """Forget what hung on a channel that is gone."""

    @abstractmethod
    def _for_notices(self) -> Channel | None:
        """The newest channel that carries notices."""

    def say(self, text: str, about: Request | None, *, raw: bool) -> bool:
        """Write a text as it stands, where ``about`` waits or else where notices go.

        ``{id}`` in it is the id of ``about``. False where there is no such channel.
        """
        channel = None if about is None else about.channel
        if channel is None or not (channel.is_open and (channel.is_pipe or channel.streaming)):
            channel = self._for_notices()
        if channel is None:
            return False
        told = text if about is None else text.replace("{id}", wire.encode_any(about.id))
        self._recorder.add("out", channel.id, {"relist-text": told[:500]}, malformed=True)
        self._outputs.append(Send(channel.id, {}, told, bare=raw))
        return True

    def _out(
        self,
        request: Request,
        message: wire.Message,
        answer: Answer,
        http: int = 200,
        text: str | None = None,
    ) -> None:
        channel, told = request.channel, {"malformed": True} if answer.malformed else {}
        if channel.kind != "post" or channel.streaming:
            self._write(channel, message, text, **told)
            if channel.kind == "post":
                self._finish(channel)
            return
        self._recorder.add("out", channel.id, message, http=http, **told)
        headers = {"content-type": JSON} | dict(answer.headers)
        self._outputs.append(Status(channel.id, http, headers, message if text is None else text))
        self._drop(channel)

    def _bare(self, channel: Channel, content: Bare) -> None:
        if channel.is_pipe or channel.streaming:
            raise wire.WireFault("HTTP status: there is no HTTP answer to give it to")
        self._recorder.add("status", channel.id, code=content.code)
        body = content.body or None
        self._outputs.append(Status(channel.id, content.code, dict(content.headers), body))
        self._drop(channel)

    def _write(
        self, channel: Channel, message: wire.Message, text: str | None = None, /, **told: Any
    ) -> None:
        self._recorder.add("out", channel.id, message, **told)
        self._outputs.append(Send(channel.id, message, text))

    def _begin_stream(self, channel: Channel, headers: wire.Message | None = None) -> None:
        if not channel.is_pipe and not channel.streaming:
            channel.streaming = True
            told = {"content-type": SSE} | dict(headers or {})
            self._outputs.append(Status(channel.id, 200, told))

    def _write_bare(self, channel: Channel, text: str) -> None:
        """Put text on an event stream as it stands."""
        self._recorder.add("note", channel.id, wrote=text[:500])
        self._outputs.append(Send(channel.id, {}, text, bare=True))

    def _accept(self, channel: Channel) -> None:
        """Take in a notification or a response, which have no answer."""
        if channel.kind == "post":
            self._close_exchange(channel, 202)

    def _close_exchange(
        self,
        channel: Channel,
        code: int,
        message: wire.Message | None = None,
        headers: wire.Message | None = None,
    ) -> None:
        told = {"content-type": JSON} if message is not None else {}
        if message is None:
            self._recorder.add("status", channel.id, code=code)
        else:
            self._recorder.add("out", channel.id, message, http=code)
        self._outputs.append(Status(channel.id, code, told | dict(headers or {}), message))
        self._drop(channel)

    def _finish(self, channel: Channel) -> None:
        self._outputs.append(Finish(channel.id))
        self._drop(channel)

    def _reset(self, channels: Iterable[Channel]) -> None:
        for channel in list(channels):
            self._recorder.add("cut", channel.id)
            self._outputs.append(Reset(channel.id))
            self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        channel.is_open = False
        self._channels.pop(channel.id, None)
        self._dropped(channel)
