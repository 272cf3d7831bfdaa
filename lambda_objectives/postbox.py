"""What a training on a Dask cluster has learnt, on its way back to the client: events of the scheduler.

The first worker writes them round by round; they arrive before the task is over, and stay when a training fails.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from lambda_objectives.terms import Reading

TRAIN = "train"  # the name of the training data


def topic(key: str) -> str:
    """Under which the events of an objective are kept."""
    return f"lambda-objectives {key}"


def post(key: str, training: float, name: str | None, readings: Mapping[str, Reading], state: dict[str, Any]) -> None:
    """Write an event, from within a task; elsewhere there is nobody to write to.

    Parameters
    ----------
    key
        Of the objective.
    training
        When the training began: what tells it from others.
    name
        Of the data set; None for a message about the state alone.
    readings
        What the history of the data set is to have of this round.
    state
        Of the training.
    """
    if "distributed" not in sys.modules:
        return
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        return
    values = {name: reading.value for name, reading in readings.items()}
    message = {"training": training, "time": time.time(), "set": name, "readings": values, "state": json.dumps(state)}
    worker.log_event(topic(key), message)


def collect(key: str) -> list[dict[str, Any]]:
    """The events of the last training of an objective; none where there is no client."""
    if "distributed" not in sys.modules:
        return []
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:  # there is none, as in a task
        return []
    events = [message for _, message in client.get_events(topic(key)) or ()]
    return [message for message in events if message["training"] == events[-1]["training"]]


def histories(key: str) -> dict[str, dict[str, list[float]]]:
    """Costs and metrics by round, of each data set of the last training of an objective."""
    found: dict[str, dict[str, list[float]]] = {}
    for message in collect(key):
        if message["set"] is None:
            continue
        history = found.setdefault(message["set"], {})
        for name, value in message["readings"].items():
            history.setdefault(name, []).append(value)
    return found
