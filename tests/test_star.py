"""Workers of a star: the same bits for all, and whatever goes wrong with one is known to all of them at once.

Most of them are threads here; those that die are processes.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client

import numpy as np
import pytest

from lambda_objectives import star
from lambda_objectives.star import Star
from lambda_objectives.workers import WorkerError

SECONDS = 20.0  # far more than anything here takes
LINUX = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files as Linux shows them")


@pytest.fixture(autouse=True)
def nothing_stays_open(monkeypatch):
    """Threads that look after a training end with it; here they look more often."""
    monkeypatch.setattr(star, "PULSE", 0.03)
    yield
    deadline = time.monotonic() + SECONDS
    while any(thread.name == "lambda_objectives" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "somebody still looks after a training"
        time.sleep(0.01)


class Crew:
    """Threads that train together; what each of them returns or raises is found in `results`, by rank.

    learn: what those who are not the first hear, given all announcements so far.
    """

    def __init__(self, size, work, ranks=None, learn=lambda heard: heard[-1] if heard else None, call=None):
        self.size, self.heard, self.results, self.stars = size, [], {}, []
        self.work, self.learn, self.call = work, learn, call or (lambda work, *given: work(*given))
        ranks = range(size) if ranks is None else ranks
        self.threads = [
            threading.Thread(target=self.one, args=[rank], daemon=True, name=f"name {rank}") for rank in ranks
        ]
        for thread in self.threads:
            thread.start()

    def star(self, rank):
        learn = lambda: self.learn(self.heard)  # noqa: E731
        self.stars.append(Star(rank, self.size, f"name {rank}", self.heard.append, learn, "127.0.0.1"))
        return self.stars[-1]

    def one(self, rank):
        try:
            self.results[rank] = self.call(lambda: self.work(self.star(rank)))
        except Exception as error:
            self.results[rank] = error

    def done(self, *but):
        """The results by rank, when all threads have ended but some."""
        for i, thread in enumerate(self.threads):
            if i not in but:
                thread.join(SECONDS)
                assert not thread.is_alive(), "still waiting"
        for one in [] if but else self.stars:
            one.close()  # as the objective does when a booster is gone
        return self.results


def together(size, work, **more):
    """What each of them returns or raises."""
    return Crew(size, work, **more).done()


def say(results, ranks, words):
    """These ranks have a WorkerError with the words."""
    for rank in ranks:
        assert isinstance(results[rank], WorkerError), results[rank]
        assert words in str(results[rank])


def module(name):
    """Functions as a booster's package would have them: for the star the name of the module tells."""
    found = types.ModuleType(name)
    exec("def call(work, *arguments):\n    return work(*arguments)\n", found.__dict__)
    return found.call


# ------------------------------------------------------------------------------------------------------------ adding up
@pytest.mark.parametrize("size", [2, 5])
def test_sums(size):
    rng = [np.random.default_rng(rank) for rank in range(size)]
    given = [
        [
            one.normal(size=500) * 10.0 ** one.integers(-8, 9, 500),
            one.normal(size=(3, 7)).astype(np.float32),
            one.integers(0, 256, 9).astype(np.uint8),
            one.integers(-(2**62) // size, 2**62 // size, 4),
            np.empty(0),
            np.empty((0, 2), np.float32),
            one.normal(size=(40, 30))[::2, ::-1],
            one.normal(size=300_000),
        ]
        for one in rng
    ]
    found = together(size, lambda workers: [workers.exchange(numbers) for numbers in given[workers.rank]])
    for i in range(len(given[0])):
        arrays = [given[rank][i] for rank in range(size)]
        total = reduce(np.add, arrays)
        for rank in range(size):
            own = found[rank][i]
            assert (own.dtype, own.shape) == (total.dtype, total.shape)
            assert own.tobytes() == total.tobytes()  # added in the order of the workers
            own += 1  # writable
    if size > 2:  # another order would have been seen
        assert (
            reduce(np.add, [one[0] for one in given[::-1]]).tobytes() != reduce(np.add, [g[0] for g in given]).tobytes()
        )


@pytest.mark.parametrize("size", [2, 4])
def test_gather(size):
    """One part after the other, of any length, on all of them."""
    parts = [np.arange(rank * 3, dtype=np.float32) for rank in range(size)]
    for found in together(size, lambda workers: workers.gather(parts[workers.rank])).values():
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, np.concatenate(parts))
        found[:] = 0.0  # its own
    mixed = together(2, lambda workers: workers.gather(parts[1]) if workers.rank else workers.exchange(parts[1]))
    say(mixed, [0, 1], "out of step")


def test_out_of_step():
    results = together(3, lambda workers: workers.exchange(np.zeros(4 + (workers.rank == 2))))
    say(
        results,
        range(3),
        "out of step: worker 0 (name 0) <f8 (4,); worker 1 (name 1) <f8 (4,); worker 2 (name 2) <f8 (5,)",
    )
    results = together(2, lambda workers: workers.exchange(np.zeros(4, [np.float32, np.float64][workers.rank])))
    say(results, range(2), "worker 0 (name 0) <f4 (4,); worker 1 (name 1) <f8 (4,)")


# ------------------------------------------------------------------------------------------------------------- failing
@pytest.mark.parametrize("numbers", [3, 1_000_000])  # the second are more than a socket takes in one go
@pytest.mark.parametrize("unlucky", [0, 1, 2])
def test_fail(unlucky, numbers):
    words = []

    def work(workers):
        workers.exchange(np.zeros(2))
        if workers.rank == unlucky:
            workers.fail("ValueError: something")
        else:
            with pytest.raises(WorkerError) as caught:
                workers.exchange(np.zeros(numbers))
            words.append(str(caught.value))
        workers.fail("again")  # without an effect
        workers.exchange(np.zeros(numbers))

    results = together(3, work)
    assert words == [f"worker {unlucky} (name {unlucky}): ValueError: something"] * 2
    say(results, range(3), "have parted, after an error of one of them")


@pytest.mark.parametrize("unlucky", [0, 1])
def test_fail_does_not_wait(unlucky):
    """The others may be in the booster, and wait for this one there."""
    told = threading.Event()

    def work(workers):
        if workers.rank == unlucky:
            workers.fail("MemoryError: too much")
            told.set()
            return None
        assert told.wait(SECONDS)
        return workers.exchange(np.zeros(2))

    say(together(3, work), {0, 1, 2} - {unlucky}, f"worker {unlucky} (name {unlucky}): MemoryError: too much")


def test_two_fail_at_once():
    def work(workers):
        if workers.rank != 1:
            workers.fail(f"error {workers.rank}")
        return workers.exchange(np.zeros(2))

    results = together(3, work)
    say(results, [0, 2], "have parted")
    say(results, [1], "worker 0 (name 0): error 0")


# ------------------------------------------------------------------------------------------------------------- leaving
@pytest.mark.parametrize("numbers", [1, 1_000_000])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("leaver", [0, 1])
def test_a_worker_that_leaves(leaver, again, numbers):
    """And goes on with something else; again: with another training, whose frames lie where those of the first lay."""
    train, over = module("xgboost.training"), threading.Event()

    def call(training):
        try:
            return train(training)
        finally:
            if threading.current_thread().name == f"name {leaver}":
                train(over.wait, SECONDS) if again else over.wait(SECONDS)

    def work(workers):
        workers.exchange(np.zeros(1))
        return workers.exchange(np.zeros(numbers)) if workers.rank != leaver else None

    crew = Crew(3, work, call=call)
    results = crew.done(leaver)
    over.set()
    crew.done()
    say(results, {0, 1, 2} - {leaver}, f"worker {leaver} (name {leaver}) has left the training")


def test_a_thread_that_ends():
    """Where no booster is on the way up, the end of the thread is the end of the training."""
    results = together(3, lambda workers: workers.exchange(np.zeros(1)) if workers.rank else None)
    say(results, [1, 2], "worker 0 (name 0) has left the training")


@pytest.mark.parametrize("name", ["xgboost.core", "lightgbm.basic"])
def test_rounds_by_hand(name):
    """A booster's method comes back after each round, and that is no end."""
    update = module(name)

    def train(rank):
        workers = update(crew.star, rank)
        total = 0.0
        for _ in range(2):
            time.sleep(2.5 * star.PULSE)
            total += update(workers.exchange, np.ones(1))[0]
        return total

    crew = Crew(2, None, ranks=[])
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(train, range(2))) == [4.0, 4.0]
    crew.done()


@pytest.mark.parametrize("rank", [0, 1])
def test_closed_in_another_thread(rank):
    """Who waits in an exchange comes back."""
    there, seen = {}, threading.Event()

    def work(workers):
        there[workers.rank] = workers
        if workers.rank != rank:
            assert seen.wait(SECONDS)
            return None
        return workers.exchange(np.zeros(1))

    crew = Crew(2, work)
    while len(there) < 2:
        time.sleep(0.01)
    time.sleep(0.1)  # for it to wait
    there[rank].close()
    crew.threads[rank].join(SECONDS)
    seen.set()
    say(crew.done(), [rank], "have parted")


def test_a_default_timeout_of_the_users():
    """It is for their own sockets."""
    try:
        socket.setdefaulttimeout(0.05)

        def work(workers):
            time.sleep(5 * star.PULSE * (workers.rank == 0))  # looked at in between, and waited for
            return workers.exchange(np.ones(4_000_000))[-1]

        assert together(2, work) == {0: 2.0, 1: 2.0}
    finally:
        socket.setdefaulttimeout(None)


# ---------------------------------------------------------------------------------------------------------- coming late
def test_some_do_not_come(monkeypatch):
    monkeypatch.setattr(star, "MEET", 0.6)
    results = together(4, lambda workers: None, ranks=[0, 2])
    say(results, [0, 2], "name 0: of 4 workers [1, 3] have not come within 1 seconds")


def test_the_first_does_not_come(monkeypatch):
    monkeypatch.setattr(star, "MEET", 0.3)
    say(together(2, lambda workers: None, ranks=[1]), [1], "name 1: the first worker is not to be reached within")


def babble(there):
    """Say something to whoever calls, till nobody may call any more."""
    with contextlib.suppress(OSError):
        while True:
            guest, _ = there.accept()
            with guest:
                guest.sendall(struct.pack("!i", 5) + b"hello")
                guest.recv(1)


@pytest.mark.parametrize("now", ["nobody", "somebody silent", "somebody else"])
def test_an_earlier_announcement(monkeypatch, now):
    """Of a first worker that is no more; another one may have its port now."""
    monkeypatch.setattr(star, "HELLO", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        old = (["127.0.0.1"], other.getsockname()[1], b"of yesterday")
        if now == "nobody":
            other.close()
        elif now == "somebody else":
            threading.Thread(target=babble, args=[other], daemon=True).start()
        asked = []

        def learn(heard):
            asked.append(old)
            return heard[0] if heard and len(asked) > 2 else old

        assert together(2, lambda workers: workers.exchange(np.ones(1))[0], learn=learn) == {0: 2.0, 1: 2.0}
        if now == "somebody else":  # wakes who is accepting
            other.shutdown(socket.SHUT_RDWR)


def strangers(port):
    """All kinds of them, who stay."""
    there = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    there[1].sendall(b"GET / HTTP/1.1\r\n\r\n")
    there[2].sendall(struct.pack("!i", 30) + b"#CHALLENGE#".ljust(30, b"-"))
    there[3].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    there[3].close()  # with a reset, as those who look for open ports do
    there[4].sendall(struct.pack("!i", 16)[:2])
    with contextlib.suppress(AuthenticationError, OSError, EOFError):
        Client(("127.0.0.1", port), authkey=b"wrong")
        raise AssertionError("let in")
    return there


@LINUX
def test_strangers(monkeypatch):
    """Nobody waits for them, and nothing of them stays."""
    monkeypatch.setattr(star, "HELLO", 1.5)
    before, guests = open_files(), []

    def learn(heard):
        if not heard:
            return None
        if not guests:
            guests.extend(strangers(heard[0][1]))
        return heard[0]

    start = time.monotonic()
    assert together(2, lambda workers: workers.exchange(np.ones(1))[0], learn=learn) == {0: 2.0, 1: 2.0}
    assert time.monotonic() - start < 2 * star.HELLO  # not as long as three of them are given, one after the other
    for guest in guests[:3]:
        guest.settimeout(SECONDS)
        with contextlib.suppress(ConnectionError):
            while guest.recv(100):  # till they are hung up on
                pass
    for guest in guests:
        guest.close()
    assert_closed(before)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def assert_closed(before):
    deadline = time.monotonic() + SECONDS
    while open_files() > before:
        assert time.monotonic() < deadline, f"{open_files() - before} more files are open than before"
        time.sleep(0.02)


@LINUX
def test_all_is_closed(monkeypatch):
    """After the end of a training, an error, and a meeting to which not all have come."""
    before = open_files()
    together(3, lambda workers: workers.exchange(np.zeros(1)))
    together(3, lambda workers: workers.fail("so") if workers.rank == 1 else workers.exchange(np.zeros(1)))
    monkeypatch.setattr(star, "MEET", 0.3)
    together(3, lambda workers: None, ranks=[0, 1])
    assert_closed(before)


# --------------------------------------------------------------------------------------------------------------- dying
VICTIM = textwrap.dedent("""
    import sys, time
    import numpy as np
    from lambda_objectives.star import Star

    rank = int(sys.argv[1])
    announce = lambda meeting: print(repr(meeting), flush=True)
    learn = lambda: eval(sys.stdin.readline())
    star = Star(rank, 3, f"name {rank}", announce, learn, "127.0.0.1")
    star.exchange(np.zeros(1))
    print("in", flush=True)
    time.sleep(60)
""")


@contextlib.contextmanager
def victim(rank):
    """A worker in a process of its own, which dies on request after its first exchange."""
    with subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(rank)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def introduce(process, crew, rank):
    """Let it know the others, or them it."""
    if rank == 0:
        crew.heard.append(eval(process.stdout.readline()))
        return
    while not crew.heard:
        time.sleep(0.01)
    process.stdin.write(repr(crew.heard[0]) + "\n")
    process.stdin.flush()


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.filterwarnings("ignore:worker . .*has died")  # if that is noticed on the way into the exchange
def test_a_worker_that_dies(rank):
    times = []

    def work(workers):
        workers.exchange(np.zeros(1))
        try:
            return workers.exchange(np.zeros(1))
        finally:
            times.append(time.monotonic())

    with victim(rank) as process:
        crew = Crew(3, work, ranks=[other for other in range(3) if other != rank])
        introduce(process, crew, rank)
        assert process.stdout.readline() == "in\n"
        process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        say(crew.done(), crew.results, f"worker {rank} (name {rank}) has died, or lost its connection")
    assert max(times) - killed < 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("action", ["always", "error"])
def test_dying_is_told_to_those_who_are_in_the_booster(action):
    """By a warning; one that is an error stops nothing of what looks after the training."""
    known = threading.Event()

    def work(workers):
        workers.exchange(np.zeros(1))
        if workers.rank == 0:  # in the booster's own communication
            assert known.wait(SECONDS)
            return None
        return workers.exchange(np.zeros(1))

    with victim(2) as process, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always" if action == "always" else "error")
        failed, hook = [], threading.excepthook
        threading.excepthook = failed.append
        try:
            crew = Crew(3, work, ranks=[0, 1])
            introduce(process, crew, 2)
            assert process.stdout.readline() == "in\n"
            process.send_signal(signal.SIGKILL)
            deadline = time.monotonic() + SECONDS
            while not caught and not failed:
                assert time.monotonic() < deadline, "no warning"
                time.sleep(0.01)
            time.sleep(2.5 * star.PULSE)  # and no second one
            known.set()
            say(crew.done(), [1], "worker 0 (name 0) has left the training")
        finally:
            threading.excepthook = hook
    told = [warning.message for warning in caught] if action == "always" else [one.exc_value for one in failed]
    assert [str(one) for one in told] == [f"worker 2 (name 2) {star.LOST}"]
