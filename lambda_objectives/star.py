"""How workers exchange numbers: sockets from each of them to the first one, which adds up.

XGBoost's collective would do for XGBoost, LightGBM has nothing of the kind for Python. A star of sockets of the
standard library serves both: for the few numbers of a round it takes half to a quarter of the time of
`xgboost.collective.allreduce` and a hundredth of that of Dask's queues (`bench.scale_reductions`), says within
milliseconds that a worker has died, and carries what went wrong in words.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.warn import warn
from lambda_objectives.workers import WorkerError

MEET = 60.0  # seconds for all workers to come together
NUMBERS, PARTS, FAILURE = b"n", b"p", b"f"
LOST = "has died, or lost its connection: look at its log; the training cannot go on without its rows"
LEFT = "has left the training, most likely with an error of its own: look at its log"
PULSE = 0.2  # seconds between looks at the others
ROUNDS = ("lightgbm.basic", "xgboost.core")  # where methods are that do one round, of a loop that is elsewhere

Meeting = tuple[list[str], int, bytes]  # where the first worker listens: addresses of its machine, port, secret


class Star:
    """Workers of which the first one adds up.

    Parameters
    ----------
    rank, size
        Which worker this is, of how many.
    name
        What it is called in error messages.
    announce, learn
        How the first worker makes known where it listens, and how the others get to know: once, through whatever has
        brought the workers together. `learn` may return None for "not yet".
    host
        The address at which others reach this machine; None for all that it seems to have.
    tell
        What becomes of the news that another worker has died, in a thread of its own.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        name: str,
        announce: Callable[[Meeting], None],
        learn: Callable[[], Meeting | None],
        host: str | None = None,
        tell: Callable[[str], None] = warn,
    ) -> None:
        self.rank, self.size = rank, size
        self.names = {rank: name}
        self._others: dict[int, Any] = {}
        self._closing = threading.Lock()
        self._tell: Callable[[str], None] | None = tell  # None once it has been told
        if rank == 0:
            self._listen(announce, [host] if host else _addresses(), name)
        else:
            self._call(learn, name)
        self._watch()

    def exchange(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up what all workers have."""
        numbers = np.ascontiguousarray(numbers)
        head = NUMBERS + f"{numbers.dtype.str} {numbers.shape}".encode()
        total = self._meet([head, numbers.tobytes()])
        return np.frombuffer(total, numbers.dtype).reshape(numbers.shape).copy()

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put together what all workers have."""
        whole = self._meet([PARTS + values.dtype.str.encode(), np.ascontiguousarray(values).tobytes()])
        return np.frombuffer(whole, values.dtype).copy()

    def fail(self, message: str) -> None:
        """Tell the others."""
        with contextlib.suppress(WorkerError):
            self._meet([FAILURE + f"{self._called(self.rank)}: {message}".encode(), b""])

    def close(self) -> None:
        """Say goodbye and hang up."""
        with self._closing:
            self._look()
            others, self._others = self._others, {}
        for other in others.values():
            with contextlib.suppress(OSError):
                other.send_bytes(FAILURE + f"{self._called(self.rank)} {LEFT}".encode())
                other.send_bytes(b"")
            other.close()

    def _watch(self) -> None:
        """Look after the training from a thread of its own, for boosters may wait for ever where a worker is lost.

        When this worker leaves the training, however that comes about, the others are told. When another one dies while
        this one is in the booster's own communication, the user is.
        """
        thread = threading.get_ident()
        frame = _outermost()
        training, code = id(frame), frame.f_code
        del frame  # it would keep all that the training has
        me = weakref.ref(self)

        def watch() -> None:
            while (star := me()) is not None and star._others:
                frame: Any = sys._current_frames().get(thread)
                while frame is not None and not (id(frame) == training and frame.f_code is code):
                    frame = frame.f_back
                with star._closing:
                    star._look()
                if frame is None:
                    star.close()
                    return
                del frame, star
                time.sleep(PULSE)

        threading.Thread(target=watch, daemon=True, name="lambda_objectives").start()

    def _look(self) -> None:
        """Tell of the first worker that is gone without a goodbye."""
        lost = [rank for rank, other in self._others.items() if _is_gone(other)]
        if lost and self._tell is not None:
            self._tell(f"{self._called(lost[0])} {LOST}")
            self._tell = None

    # ------------------------------------------------------------------------------------------------- coming together
    def _listen(self, announce: Callable[[Meeting], None], hosts: list[str], name: str) -> None:
        secret = secrets.token_bytes(32)
        with Listener(("", 0), "AF_INET", backlog=self.size, authkey=secret) as listener:
            announce((hosts, int(listener.address[1]), secret))
            done = threading.Event()

            def accept() -> None:
                while len(self._others) < self.size - 1:
                    try:
                        other = listener.accept()
                        rank, called = other.recv()
                    except (AuthenticationError, EOFError):  # a stranger
                        continue
                    except OSError:  # closed, for some have not come in time
                        return
                    self._others[rank], self.names[rank] = _quick(other), called
                done.set()

            threading.Thread(target=accept, daemon=True).start()
            if not done.wait(MEET):
                missing = sorted(set(range(self.size)) - {0} - set(self._others))
                raise WorkerError(f"{name}: of {self.size} workers {missing} have not come within {MEET:.0f} seconds")
        for other in self._others.values():
            other.send(self.names)

    def _call(self, learn: Callable[[], Meeting | None], name: str) -> None:
        deadline = time.monotonic() + MEET
        while time.monotonic() < deadline:
            meeting = learn()
            if meeting is None:
                time.sleep(0.01)
                continue
            hosts, port, secret = meeting
            for host in hosts:
                try:
                    first = Client((host, port), "AF_INET", authkey=secret)
                    first.send((self.rank, name))
                    self.names = first.recv()
                except (OSError, AuthenticationError, EOFError):  # of an earlier training, or not this way
                    continue
                self._others[0] = _quick(first)
                return
            time.sleep(0.05)
        raise WorkerError(f"{name}: the first worker is not to be reached within {MEET:.0f} seconds")

    # --------------------------------------------------------------------------------------------------- one exchange
    def _meet(self, message: list[Any]) -> Any:
        if not self._others:
            raise WorkerError("the workers have parted, after an error of one of them")
        return self._add_up(message) if self.rank == 0 else self._send_in(message)

    def _send_in(self, message: list[Any]) -> Any:
        first = self._others[0]
        try:
            for piece in message:
                first.send_bytes(piece)
            head, total = first.recv_bytes(), first.recv_bytes()
        except (OSError, EOFError) as error:
            self.close()
            raise WorkerError(f"{self._called(0)} {LOST}") from error
        if head[:1] == FAILURE:
            raise WorkerError(head[1:].decode())
        return total

    def _add_up(self, message: list[Any]) -> Any:
        head, own = message
        found: dict[int, tuple[bytes, Any]] = {0: (head, own)}
        lost = False
        waiting: dict[Any, int] = {other: rank for rank, other in self._others.items()}
        while waiting:
            ready: list[Any] = wait(list(waiting))
            for other in ready:
                rank = waiting.pop(other)
                try:
                    found[rank] = other.recv_bytes(), other.recv_bytes()
                except (OSError, EOFError):
                    found[rank], lost = (FAILURE + f"{self._called(rank)} {LOST}".encode(), b""), True
            if lost:
                break  # no use to wait for those who may wait for it
        failures = [sent[1:].decode() for _, (sent, _) in sorted(found.items()) if sent[:1] == FAILURE]
        if not failures and any(sent != head for sent, _ in found.values()):
            failures = [
                "the workers are out of step: "
                + "; ".join(f"{self._called(rank)} {sent[1:].decode()}" for rank, (sent, _) in sorted(found.items()))
                + ": give all of them the same spec, data sets and callbacks"
            ]
        answer = [FAILURE + failures[0].encode(), b""] if failures else [head, self._result(found)]
        for other in self._others.values():
            with contextlib.suppress(OSError):
                for piece in answer:
                    other.send_bytes(piece)
        if failures:
            self.close()
            raise WorkerError(failures[0])
        return answer[1]

    def _result(self, found: dict[int, tuple[bytes, Any]]) -> Any:
        """Sum, or all of it, in the order of the workers, whoever came first."""
        if found[0][0][:1] == PARTS:
            return b"".join(found[rank][1] for rank in range(self.size))
        dtype = np.dtype(found[0][0][1:].split()[0].decode())
        total = np.frombuffer(found[0][1], dtype).copy()
        for rank in range(1, self.size):
            total += np.frombuffer(found[rank][1], dtype)
        return total.tobytes()

    def _called(self, rank: int) -> str:
        return f"worker {rank} ({self.names.get(rank, 'unknown')})"


def _outermost() -> Any:
    """The frame of what trains: the last one on the way up that is of a booster's own training.

    Where the user makes each round by a booster's method, what calls that; without a booster all that the thread does.
    """
    frame: Any = sys._getframe(1)
    trainer = caller = None
    while True:
        module = frame.f_globals.get("__name__", "")
        if module in ROUNDS:
            caller = frame.f_back
        elif module.partition(".")[0] in ("lightgbm", "xgboost"):
            trainer = frame
        if frame.f_back is None:
            return trainer or caller or frame
        frame = frame.f_back


def _is_gone(connection: Any) -> bool:
    """Whether the other end is closed and there is nothing left to read; what there is stays to be read."""
    try:
        if not wait([connection], 0):
            return False
        with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as again:
            return again.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def _quick(connection: Any) -> Connection:
    """A connection that sends at once, rather than to wait for more to send."""
    with socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as again:
        again.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection  # type: ignore[no-any-return]


def _addresses() -> list[str]:
    """Addresses of this machine, the one by which it reaches others first."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.connect(("10.255.255.255", 1))  # nothing is sent: the system only picks an address of ours
        found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        found.extend(socket.gethostbyname_ex(socket.gethostname())[2])
    return list(dict.fromkeys([*found, "127.0.0.1"]))
