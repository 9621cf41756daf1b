"""Ports of this machine."""

import socket


def free_port() -> int:
    """A port that nobody listens on, a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
