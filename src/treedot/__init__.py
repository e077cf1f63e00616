"""treedot: tree kernels as dot products.

A tree becomes a vector, in time linear in the tree, such that the dot product of two vectors counts the tree
fragments that the trees share: a sparse row of small fragments (``FragmentVectorizer``), or a dense vector
that approximates the classic tree kernel (``DistributedTreeVectorizer``, after *Distributed Tree Kernels*,
Zanzotto & Dell'Arciprete, ICML 2012). The exact kernels are included.

Names are loaded on first use, so ``import treedot`` is cheap.
"""

from treedot._runtime.lazy import exports
from treedot._version import __version__ as __version__

__getattr__, __dir__, __all__ = exports(__name__, __file__)
