"""Connections of `multiprocessing.connection`: how they are made of sockets, bounded in time, looked at and ended."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any


def is_gone(connection: Any) -> bool:
    """Whether the other end is closed and there is nothing left to read; what there is stays to be read."""
    try:
        if not wait([connection], 0):
            return False
        with _socket(connection) as there:
            return there.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def connected(there: socket.socket) -> Any:
    """A connection that sends at once, does not wait for more to send, and notices in minutes if a cable is cut."""
    there.setblocking(True)
    there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    there.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 9)):
        if hasattr(socket, name):  # not on every system
            there.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return Connection(there.detach())


@contextlib.contextmanager
def _socket(connection: Any) -> Iterator[socket.socket]:
    """The socket under a connection, which stays open."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as there:
        there.setblocking(True)  # a default time-out that a user may have set would hold for the connection too
        yield there


def hang_up(connection: Any) -> None:
    """End what goes on over a connection, in whatever thread."""
    with contextlib.suppress(OSError), _socket(connection) as there:
        there.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def bounded(connection: Any, seconds: float) -> Iterator[None]:
    """Hang up if what is done within this takes longer."""
    timer = threading.Timer(seconds, hang_up, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def addresses() -> list[str]:
    """Addresses of this machine, the one by which it reaches others first."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("10.255.255.255", 1))  # nothing is sent: the system only picks an address of ours
        found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found.extend(socket.gethostbyname_ex(socket.gethostname())[2])
    return list(dict.fromkeys([*found, "127.0.0.1"]))
