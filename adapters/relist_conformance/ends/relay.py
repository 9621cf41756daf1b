"""The server process of the stdio end: pumps bytes between its pipes and the suite.

Usage: ``relay.py PORT TOKEN``. It runs without site-packages and uses the standard library alone,
so that a client under test waits only a moment for its server. It ends when either side ends.
"""

import os
import socket
import sys
from _thread import start_new_thread

_CHUNK = 65536


def _upstream(link: socket.socket) -> None:
    while data := os.read(0, _CHUNK):
        link.sendall(data)
    # What was sent is delivered, and the suite sees the end; it hangs up in turn.
    link.shutdown(socket.SHUT_WR)


def _pump_upstream(link: socket.socket) -> None:
    try:
        _upstream(link)
    except OSError:
        os._exit(0)


def main() -> None:
    """Connect, tell the token, pump until the suite hangs up."""
    port, token = int(sys.argv[1]), sys.argv[2]
    try:
        link = socket.create_connection(("127.0.0.1", port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link.sendall(token.encode() + b"\n")
    except OSError:
        os._exit(1)  # the play is over: a server that does not start
    start_new_thread(_pump_upstream, (link,))
    try:
        while data := link.recv(_CHUNK):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
