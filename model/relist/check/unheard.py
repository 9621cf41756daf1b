"""Notices that were sent, and may not have been heard: what shows that a client has heard them."""

from attrs import frozen

from relist.check.following import Key
from relist.values import Channel


@frozen
class Notice:
    """A notice that was sent. ``serial`` is that of the machine's subscription which it names."""

    seq: int
    channel: str
    about: Channel
    serial: int | None


class Unheard:
    """Those that nothing shows yet to have been heard. Each is given out once."""

    def __init__(self) -> None:
        self._notices: list[Notice] = []
        self._pings: dict[str, tuple[str, int]] = {}

    def sent(self, notice: Notice) -> None:
        """It is on its way."""
        self._notices.append(notice)

    def pinged(self, key: Key, seq: int) -> None:
        """A ping is on its way, on a channel and with an id."""
        self._pings[key[1]] = (key[0], seq)

    def ponged(self, wire_id: str) -> list[Notice]:
        """A ping was answered, wherever: what was sent before it on its channel has been heard."""
        channel, ping_seq = self._pings.pop(wire_id, ("", -1))
        return self._take(
            [one for one in self._notices if one.seq < ping_seq and one.channel == channel]
        )

    def before(self, seq: int) -> list[Notice]:
        """A fence was passed that began at this event."""
        return self._take([one for one in self._notices if one.seq < seq])

    def _take(self, heard: list[Notice]) -> list[Notice]:
        self._notices = [one for one in self._notices if one not in heard]
        return heard
