"""A forked process goes on, whatever the other threads of its parent were computing."""

import multiprocessing
import os
import threading

import pytest
from paper.rivals import label_selection

from treedot import read_trees
from treedot.vectors import SparseEncoder, SparseSpec
from treedot.vectors.sparse import encoder

TREES = read_trees(["(S (NP a) (VP b))", "(S (NP c) (VP b))"])


def encode():
    SparseEncoder(SparseSpec(rest="dense", damping="linear")).encode(TREES)


def compare():
    label_selection.LabelSelectionKernel(["S"]).gram(TREES)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("use", "module", "inside"), [(encode, encoder, "rest_of"), (compare, label_selection, "intern_nodes")]
)
def test_what_a_thread_computes_at_the_fork_can_be_computed_in_the_child(monkeypatch, use, module, inside):
    use()
    parent, reached, forked = os.getpid(), threading.Event(), threading.Event()
    compute = getattr(module, inside)

    def slowly(*arguments):
        if os.getpid() == parent:
            reached.set()
            forked.wait()
        return compute(*arguments)

    monkeypatch.setattr(module, inside, slowly)
    thread = threading.Thread(target=use)
    thread.start()
    try:
        assert reached.wait(60)
        child = multiprocessing.get_context("fork").Process(target=use)
        child.start()
        child.join(20)
        ended = child.exitcode
        child.kill()
    finally:
        forked.set()
        thread.join()
    assert ended == 0
