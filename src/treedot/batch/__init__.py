"""Many files, many processes, many machines: trees to folders of parts, with any engine.

The files are cut into *shards*, ranges that are read by themselves; each becomes one *part*, a file of Arrow.
A part depends on its shard and on what is in the folder alone, so that shards need no coordination, parts are
the same to the byte whichever engine makes them, and a run that was ended goes on where it was. The same
holds for ``fit``, in which processes train one model together.
"""

from treedot.batch.duplicates import find_duplicates
from treedot.batch.fitting import fit
from treedot.batch.jobs import encode, plan_encode, plan_predict, predict
from treedot.batch.run import Done
from treedot.batch.shard import Outcome, do_shard
from treedot.batch.status import Status, status
from treedot.batch.streaming import train_files
from treedot.readers.ranges import Reading

__all__ = [
    "Done",
    "Outcome",
    "Reading",
    "Status",
    "do_shard",
    "encode",
    "find_duplicates",
    "fit",
    "plan_encode",
    "plan_predict",
    "predict",
    "status",
    "train_files",
]
