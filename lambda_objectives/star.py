"""How workers exchange numbers: sockets from each of them to the first one, which adds up.

XGBoost's collective would do for XGBoost, LightGBM has nothing of the kind for Python. A star of sockets of the
standard library serves both: for the few numbers of a round it takes less than half the time of
`xgboost.collective.allreduce` and a thirtieth or less of that of Dask's queues (`bench.scale_reductions`), says within
milliseconds that a worker has died, and carries what went wrong in words.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from multiprocessing import AuthenticationError
from multiprocessing.connection import answer_challenge, deliver_challenge, wait
from typing import Any

import numpy as np
import numpy.typing as npt

from lambda_objectives.sockets import addresses, bounded, connected, hang_up, is_gone
from lambda_objectives.warn import warn
from lambda_objectives.workers import WorkerError

MEET = 60.0  # seconds for all workers to come together
HELLO = 5.0  # seconds to reach a host, and for both ends to show that they know the secret
NUMBERS, PARTS, FAILURE = b"n", b"p", b"f"
LOST = "has died, or lost its connection: look at its log; the training cannot go on without its rows"
LEFT = "has left the training, most likely with an error of its own: look at its log"
PARTED = "the workers have parted, after an error of one of them"
PULSE = 0.2  # seconds between looks at the others
STRANGE = (OSError, EOFError, AuthenticationError, AssertionError)  # what a meeting with a stranger may end with

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
        # collecting garbage may close this star while it is being closed, in the same thread
        self._closing = threading.RLock()
        self._talking = threading.Lock()  # in an exchange, or looking whether somebody is gone
        self._tell: Callable[[str], None] | None = tell  # None once it has been told
        if rank == 0:
            self._listen(announce, [host] if host else addresses(), name)
        else:
            self._call(learn, name)
        self._watch()

    def exchange(self, numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Add up what all workers have."""
        total = self._meet(NUMBERS + f"{numbers.dtype.str} {numbers.shape}".encode(), numbers)
        return np.frombuffer(total, numbers.dtype).reshape(numbers.shape).copy()

    def gather(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Put together what all workers have."""
        return np.frombuffer(self._meet(PARTS + values.dtype.str.encode(), values), values.dtype).copy()

    def fail(self, message: str) -> None:
        """Tell the others and part, without waiting for them: they may be waiting for this worker in the booster."""
        self._part(f"{self._called(self.rank)}: {message}")

    def close(self) -> None:
        """Say goodbye and hang up."""
        self._look()
        self._part(f"{self._called(self.rank)} {LEFT}")

    def _part(self, last_words: str) -> None:
        with self._closing:
            others, self._others = self._others, {}
        for other in others.values():
            with contextlib.suppress(OSError):
                other.send_bytes(FAILURE + last_words.encode())
                other.send_bytes(b"")
            hang_up(other)
            other.close()

    def _watch(self) -> None:
        """Look after the training from a thread of its own, for boosters may wait for ever where a worker is lost.

        When this worker leaves the training, however that comes about, the others are told. When another one dies while
        this one is in the booster's own communication, the user is.
        """
        thread = threading.get_ident()
        me = weakref.ref(self)

        def watch(training: Any) -> None:
            """Holds the frame itself, a pulse longer than it runs: a later one may come to lie at the same address."""
            while (star := me()) is not None and star._others:
                frame: Any = sys._current_frames().get(thread)
                while frame is not None and frame is not training:
                    frame = frame.f_back
                star._look()
                if frame is None:
                    star.close()
                    return
                del frame, star
                time.sleep(PULSE)

        threading.Thread(target=watch, args=[_training()], daemon=True, name="lambda_objectives").start()

    def _look(self) -> None:
        """Tell of the first worker that is gone without a goodbye."""
        if self._tell is not None and (lost := self._lost()):
            # in a thread, so that a warning which is an error ends nothing else
            threading.Thread(target=self._tell, args=[f"{self._called(lost[0])} {LOST}"], daemon=True).start()
            self._tell = None

    def _lost(self) -> list[int]:
        """Who is gone, while this worker is not in an exchange, which sees to that itself."""
        if not self._talking.acquire(blocking=False):
            return []
        try:
            others = self._others
            gone = [rank for rank, other in others.items() if is_gone(other)]
            return gone if others is self._others else []  # else closed here
        finally:
            self._talking.release()

    # ------------------------------------------------------------------------------------------------- coming together
    def _listen(self, announce: Callable[[Meeting], None], hosts: list[str], name: str) -> None:
        secret = secrets.token_bytes(32)
        come: dict[int, Any] = {}
        done = threading.Event()

        def greet(guest: Any) -> None:
            """In a thread of its own: a stranger who says nothing keeps nobody else waiting."""
            try:
                with bounded(guest, HELLO):
                    deliver_challenge(guest, secret)
                    answer_challenge(guest, secret)
                    rank, called = guest.recv()
            except STRANGE:
                guest.close()
                return
            with self._closing:
                come[rank], self.names[rank] = guest, called
                if len(come) == self.size - 1:
                    done.set()

        def accept() -> None:
            while listener.fileno() >= 0:  # it is closed when all have come, or some have not in time
                try:
                    guest = connected(listener.accept()[0])
                except OSError:  # nobody yet, or somebody who is gone again
                    continue
                threading.Thread(target=greet, args=[guest], daemon=True).start()

        with socket.create_server(("", 0), backlog=self.size) as listener:
            listener.settimeout(PULSE)  # closing it would not wake who waits for ever
            announce((hosts, int(listener.getsockname()[1]), secret))
            threading.Thread(target=accept, daemon=True).start()
            done.wait(MEET)
        with self._closing:
            self._others = dict(come)
            missing = sorted(set(range(1, self.size)) - set(come))
        if missing:
            message = f"{name}: of {self.size} workers {missing} have not come within {MEET:.0f} seconds"
            self._part(message)
            raise WorkerError(message)
        for other in self._others.values():
            with contextlib.suppress(OSError):  # who has died since will be missed at the first exchange
                other.send_bytes(NUMBERS + json.dumps(list(self.names.items())).encode())

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
                    first = connected(socket.create_connection((host, port), HELLO))
                except OSError:  # of an earlier training, or not this way
                    continue
                try:
                    with bounded(first, HELLO):
                        answer_challenge(first, secret)
                        deliver_challenge(first, secret)
                        first.send((self.rank, name))
                    with bounded(first, MEET + HELLO):  # while the first one waits for all, or says who is not there
                        head = first.recv_bytes()
                except STRANGE:
                    first.close()
                    continue
                if head[:1] == FAILURE:
                    first.close()
                    raise WorkerError(head[1:].decode())
                self.names = dict(json.loads(head[1:]))
                self._others[0] = first
                return
            time.sleep(0.05)
        raise WorkerError(f"{name}: the first worker is not to be reached within {MEET:.0f} seconds")

    # --------------------------------------------------------------------------------------------------- one exchange
    def _meet(self, head: bytes, values: npt.NDArray[Any]) -> Any:
        message = [head, np.ascontiguousarray(values).tobytes()]
        with self._talking:
            others = self._others
            if not others:
                raise WorkerError(PARTED)
            return self._add_up(others, message) if self.rank == 0 else self._send_in(others[0], message)

    def _send_in(self, first: Any, message: list[Any]) -> Any:
        try:
            with contextlib.suppress(OSError):  # who has hung up may have said why
                for piece in message:
                    first.send_bytes(piece)
            head, total = first.recv_bytes(), first.recv_bytes()
        except (OSError, EOFError):
            words = f"{self._called(0)} {LOST}" if self._others else PARTED
            head, total = FAILURE + words.encode(), b""
        if head[:1] == FAILURE:
            self.close()
            raise WorkerError(head[1:].decode())
        return total

    def _add_up(self, others: dict[int, Any], message: list[Any]) -> Any:
        head, own = message
        found: dict[int, tuple[bytes, Any]] = {0: (head, own)}
        lost = False
        waiting: dict[Any, int] = {other: rank for rank, other in others.items()}
        while waiting and not lost:  # no use to wait for those who may wait for one that is lost
            try:
                ready: list[Any] = wait(list(waiting))
            except OSError:  # closed in another thread
                break
            for other in ready:
                rank = waiting.pop(other)
                try:
                    found[rank] = other.recv_bytes(), other.recv_bytes()
                except (OSError, EOFError):
                    found[rank], lost = (FAILURE + f"{self._called(rank)} {LOST}".encode(), b""), True
        if not self._others:
            raise WorkerError(PARTED)
        failures = [sent[1:].decode() for _, (sent, _) in sorted(found.items()) if sent[:1] == FAILURE]
        if not failures and any(sent != head for sent, _ in found.values()):
            failures = [
                "the workers are out of step: "
                + "; ".join(f"{self._called(rank)} {sent[1:].decode()}" for rank, (sent, _) in sorted(found.items()))
                + ": give all of them the same spec, data sets and callbacks"
            ]
        answer = [FAILURE + failures[0].encode(), b""] if failures else [head, self._result(found)]
        for other in others.values():
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


def _training() -> Any:
    """The frame of the function that trains: the last one on the way up that belongs to a booster's package.

    Where a booster is driven round by round, by hand, it is the first frame of the thread.
    """
    frame: Any = sys._getframe(1)
    found = None
    while True:
        module = frame.f_globals.get("__name__", "")
        # the modules of the boosters' methods, which come back after each round
        if module.partition(".")[0] in ("lightgbm", "xgboost") and module not in ("lightgbm.basic", "xgboost.core"):
            found = frame
        if frame.f_back is None:
            return found or frame
        frame = frame.f_back
