"""Workers that are threads of one process, to test what several do together."""

import threading

import numpy as np

from lambda_objectives.workers import WorkerError


class Threads:
    """One of several threads that add up numbers at a barrier."""

    def __init__(self, rank, size, barrier, desk):
        self.rank, self.size, self.barrier, self.desk = rank, size, barrier, desk

    def exchange(self, numbers):
        return self._meet(np.array(numbers))

    def gather(self, values):
        return np.concatenate(self._meet(np.array(values), lambda each: each))

    def fail(self, message):
        self._meet(message)

    def _meet(self, given, made=None):
        self.desk[self.rank] = given
        self.barrier.wait(30)
        all_of_them = list(self.desk)
        self.barrier.wait(30)
        failed = [f"worker {i}: {text}" for i, text in enumerate(all_of_them) if isinstance(text, str)]
        if isinstance(given, str):
            return None
        if failed:
            raise WorkerError(failed[0])
        if made is not None:
            return made(all_of_them)
        if len({len(one) for one in all_of_them}) > 1:
            raise WorkerError(f"out of step: {[len(one) for one in all_of_them]} numbers")
        return sum(all_of_them)


def together(size, work):
    """Call work(workers) in as many threads; the results, or the first error that is no WorkerError."""
    barrier, desk = threading.Barrier(size), [None] * size
    results, errors = [None] * size, []

    def one(rank):
        try:
            results[rank] = work(Threads(rank, size, barrier, desk))
        except BaseException as error:
            errors.append(error)
            if not isinstance(error, WorkerError):
                results[rank] = error

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((error for error in errors if not isinstance(error, WorkerError)), errors[0])
    return results
