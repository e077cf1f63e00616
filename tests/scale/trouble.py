"""Shards that fail on purpose, in a module that other processes can import."""

import os
import signal

from treedot.scale import do_shard


def killing(folder, number, *poisoned):
    """Do a shard, but die in those that are poisoned."""
    if number in poisoned:
        os.kill(os.getpid(), signal.SIGKILL)
    return do_shard(folder, number)
