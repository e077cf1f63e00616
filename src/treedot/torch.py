"""Distributed trees in PyTorch: a layer that encodes trees, and batches of trees for a ``DataLoader``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from treedot.errors import DeviceError, ParameterError, SpecMismatchError, missing
from treedot.readers import read_trees
from treedot.trees import Forest
from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer
from treedot.vectors.gpu.encoder import check_supported
from treedot.vectors.spec import spec_from_dict

try:
    import torch
    from torch import nn
    from torch.utils.data import Dataset
except ModuleNotFoundError:
    raise missing("PyTorch", "torch", "treedot.torch") from None

__all__ = ["DistributedTrees", "TreeDataset", "collate_trees"]

Batch = tuple[Forest, torch.Tensor | None]  # trees, and their targets


class DistributedTrees(nn.Module):
    """A layer that turns trees into their distributed trees, as rows of a tensor.

    It has no weights and is not trained: no gradient goes into it. Its state is the settings of the vectors;
    loading the state of a layer with other settings is an error. The tensor is on the device of the layer
    and has its floating-point type, as after ``layer.to("cuda")`` or ``network.half()``.

    On a GPU the vectors are made there, and do not pass through the memory of the host. Settings that the
    GPU encoder does not support, such as ``kernel="partial"``, are encoded by the processor and copied.

    Parameters
    ----------
    vectorizer : DistributedTreeVectorizer, default=None
        The settings of the vectors, and ``n_jobs``; ``DistributedTreeVectorizer(n_jobs=-1)`` by default. Its
        ``device`` has no effect.

    Attributes
    ----------
    out_features : int
        The number of elements of a vector.

    See Also
    --------
    TreeDataset : Trees and targets for a ``DataLoader``.
    treedot.DistributedTreeVectorizer : The same vectors as NumPy arrays.

    References
    ----------
    F. M. Zanzotto, A. Santilli, L. Ranaldi, D. Onorati, P. Tommasino and F. Fallucchi (2020), *KERMIT:
    Complementing Transformer Architectures with Encoders of Explicit Syntactic Interpretations*, EMNLP.

    Examples
    --------
    >>> import torch
    >>> from treedot.torch import DistributedTrees
    >>> network = torch.nn.Sequential(DistributedTrees(), torch.nn.Linear(8192, 2))
    >>> network(["(S (NP Ann) (VP runs))", "(S (NP Bob) (VP runs))"]).shape
    torch.Size([2, 2])
    """

    def __init__(self, vectorizer: DistributedTreeVectorizer | None = None) -> None:
        super().__init__()
        if vectorizer is None:
            vectorizer = DistributedTreeVectorizer(n_jobs=-1)
        elif not isinstance(vectorizer, DistributedTreeVectorizer):
            raise ParameterError(f"vectorizer must be a DistributedTreeVectorizer, not {vectorizer!r}")
        self._encoding = vectorizer._encoding._replace(device="cpu")
        self._n_jobs = vectorizer.n_jobs
        # It is moved and converted with the network, and so shows the device and the type of its tensors.
        self.register_buffer("_place", torch.empty(0), persistent=False)

    @property
    def out_features(self) -> int:
        """The number of elements of a vector."""
        return self._encoding.spec.n_components

    @torch.compiler.disable
    def forward(self, trees: Any) -> torch.Tensor:
        """Return the vectors of trees.

        Parameters
        ----------
        trees : source of trees
            A ``Forest``, or anything else that ``read_trees`` reads.

        Returns
        -------
        tensor of shape (n_trees, out_features)
            The vectors.

        Raises
        ------
        SourceError
            If the trees cannot be read.
        RangeError
            If a vector is too large for its type.
        """
        forest = read_trees(trees)
        if self._makes(self._place.device):
            encoding = self._encoding._replace(device=str(self._place.device))
            vectors = encoding.to_gpu(forest, self._n_jobs)
        else:
            vectors = torch.from_numpy(self._encoding.transform(forest, self._n_jobs))
        return vectors.to(self._place)

    def _makes(self, device: torch.device) -> bool:
        """Return whether a device can make the vectors itself."""
        try:
            check_supported(self._encoding.spec)
        except DeviceError:
            return False
        return device.type == "cuda"

    def get_extra_state(self) -> dict[str, Any]:
        """Return the settings of the vectors, for ``state_dict``.

        Returns
        -------
        dict
            The fields of the spec, as plain values.
        """
        return self._encoding.spec.to_dict()

    def set_extra_state(self, state: Any) -> None:
        """Compare stored settings with those of the layer, for ``load_state_dict``.

        Parameters
        ----------
        state : dict
            What ``get_extra_state`` returned.

        Raises
        ------
        SpecMismatchError
            If the settings differ, or if there are none.
        """
        if not isinstance(state, dict):
            raise SpecMismatchError("the state holds no settings of distributed trees")
        self._encoding.spec.require_same(spec_from_dict(state))

    def extra_repr(self) -> str:
        """Return the settings, for the text of the layer.

        Returns
        -------
        str
            The settings.
        """
        spec = self._encoding.spec
        chosen = {"decay": spec.decay, "composition": spec.composition, "kernel": spec.kernel}
        return ", ".join([str(spec.n_components), *(f"{name}={value!r}" for name, value in chosen.items())])


class TreeDataset(Dataset):
    """Trees and their targets, from which a ``DataLoader`` makes batches for ``DistributedTrees``.

    Pass ``collate_fn=collate_trees`` to the loader. A batch is a ``Forest`` and a tensor of targets. Trees
    are read once and stay packed in memory; processes of a loader (``num_workers``) get copies.

    Parameters
    ----------
    X : source of trees
        Anything that ``read_trees`` reads.
    y : sequence of length n_trees, default=None
        The targets. Floating-point numbers stay numbers, as float32. All other targets are classes: the
        tensors hold the number of each in ``classes``.
    classes : sequence, default=None
        The classes in the order of their numbers; by default those of ``y``, sorted. Give those of the
        training data for other data.

    Attributes
    ----------
    trees : Forest
        The trees.
    targets : tensor of shape (n_trees,), or None
        The targets.
    classes : array or None
        The classes; None for numbers.

    See Also
    --------
    collate_trees : Joins the items of a batch.

    Examples
    --------
    >>> from torch.utils.data import DataLoader
    >>> from treedot.torch import TreeDataset, collate_trees
    >>> data = TreeDataset(["(S (A a))", "(S (B b))", "(S (A b))"], ["A", "B", "A"])
    >>> for trees, targets in DataLoader(data, batch_size=2, collate_fn=collate_trees):
    ...     print(len(trees), targets)
    2 tensor([0, 1])
    1 tensor([0])
    """

    def __init__(self, X: Any, y: Any = None, classes: Sequence[Any] | None = None) -> None:
        self.trees = read_trees(X)
        self.targets: torch.Tensor | None = None
        self.classes: np.ndarray | None = None
        if y is None:
            return
        values = np.asarray(y)
        if values.shape != (len(self.trees),):
            raise ParameterError(f"y must hold one target for each of the {len(self.trees)} trees")
        if values.dtype.kind == "f" and classes is None:
            self.targets = torch.from_numpy(values.astype(np.float32))
        else:
            self.classes = np.unique(values) if classes is None else np.asarray(classes)
            self.targets = torch.from_numpy(_numbers(values, self.classes))

    def __len__(self) -> int:
        return len(self.trees)

    def __getitem__(self, number: int) -> Batch:
        return self._batch([number])

    def __getitems__(self, numbers: Sequence[int]) -> list[Batch]:
        """Return the items of a batch, already joined: a loader asks for them together."""
        return [self._batch(numbers)]

    def _batch(self, numbers: Sequence[int]) -> Batch:
        return self.trees[list(numbers)], None if self.targets is None else self.targets[list(numbers)]


def collate_trees(items: Sequence[Batch]) -> Any:
    """Join the items of a batch, as ``collate_fn`` of a ``DataLoader``.

    Parameters
    ----------
    items : sequence of items of a TreeDataset
        The items.

    Returns
    -------
    Forest, or tuple of Forest and tensor
        The trees, and their targets if they have any.

    See Also
    --------
    TreeDataset : Trees and targets for a ``DataLoader``.
    """
    forests, targets = zip(*items, strict=True)
    trees = Forest.concat(forests)
    return trees if targets[0] is None else (trees, torch.cat(targets))


def _numbers(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each value's class."""
    number = {value: k for k, value in enumerate(classes.tolist())}
    try:
        return np.array([number[value] for value in values.tolist()], np.int64)
    except KeyError as error:
        raise ParameterError(f"the class {error.args[0]!r} is not one of the given classes") from None
