"""Process the trees of many files, on many processes or machines, with any engine.

The input files are cut into *shards*, ranges that can be read independently. Each shard becomes one *part*,
an Arrow file. A part depends only on its shard and on the files in the output folder. So shards need no
coordination, every engine writes the same bytes, and an interrupted run resumes where it stopped. The same
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
