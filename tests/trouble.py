"""Tasks that die on purpose, in a module that other processes can import."""

import os
import signal
from pathlib import Path

from treedot.batch.partition import do_partition
from treedot.batch.shard import do_shard

POISONED, UNLUCKY = 1, 4  # shards


def deadly_shard(folder, number):
    """Do a shard, but kill the worker: always in the poisoned one, and in the unlucky one the first time."""
    met = Path(f"{folder}.met")
    if number == POISONED or (number == UNLUCKY and not met.exists()):
        met.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return do_shard(folder, number)


def deadly_partition(folder, rounds, number):
    """Do a partition, but kill the worker in the second one the first time."""
    met = Path(f"{folder}.met")
    if number == 1 and not met.exists():
        met.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return do_partition(folder, rounds, number)


class UnpicklableError(Exception):
    """An error that is pickled, and cannot be made again."""

    def __init__(self, a, b):
        super().__init__(f"{a}, {b}")


def raise_unpicklable():
    raise UnpicklableError("a", "b")


def print_and_return(value):
    print("not a result", flush=True)
    os.write(1, b"nor this\n")
    return value
