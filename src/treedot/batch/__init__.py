"""Process the trees of many files, on many processes or machines, with any engine.

The input files are cut into *shards*, ranges that can be read independently. Each shard becomes one *part*,
an Arrow file. A part depends only on its shard and on the files in the output folder. So shards need no
coordination, every engine writes the same bytes, and an interrupted run resumes where it stopped. The same
holds for ``fit``, in which processes train one model together.
"""

from treedot._runtime.lazy import exports

__getattr__, __dir__, __all__ = exports(__name__, __file__)
