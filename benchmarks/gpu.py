"""Measure dense vectors on a GPU: ``python -m benchmarks.gpu``.

For each kind of trees: the largest difference from the CPU's vectors, relative to the largest element; trees
per second of the GPU's own work (the operations are already there), from packed arrays to vectors on the GPU,
and to classes, while all threads of this machine list operations. ``--neighbours 1000000`` compares this
number of generated trees with each other, and some of them with all in float32. ``--layer`` compares the
layer of ``treedot.torch`` with the encoder, batch by batch, and counts the bytes that come back to the host.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grammar import forests
from benchmarks.trees import corpus
from treedot import DistributedTreeVectorizer, Forest
from treedot._runtime.threads import open_threads
from treedot.vectors import DenseEncoder, DenseSpec
from treedot.vectors.gpu import GpuEncoder, nearest_tensors
from treedot.vectors.gpu.encoder import wide_trees
from treedot.vectors.gpu.operations import list_operations

ROUNDS = 5
NEIGHBOURS = 10
BATCH = 4096
SAMPLED = 500


def seconds_on_gpu(run: Any) -> float:
    """Return the shortest time of several runs, by the GPU's own clock."""
    import torch

    run()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return min(times)


def largest_differences(encoder: GpuEncoder, forest: Forest) -> tuple[float, float, float]:
    """Return the largest differences of vectors, relative to the largest element of each.

    They are those of the GPU from the CPU, and of both from the CPU in float64.
    """
    expected = DenseEncoder(encoder.spec).encode(forest, n_jobs=-1)
    exact = DenseEncoder(replace(encoder.spec, dtype="float64")).encode(forest, n_jobs=-1)
    got = encoder.encode(forest).cpu().numpy()
    largest = np.abs(exact).max(axis=1, keepdims=True)
    pairs = ((got, expected), (got, exact), (expected, exact))
    gpu, of_gpu, of_processor = (float((np.abs(a - b) / largest).max()) for a, b in pairs)
    return gpu, of_gpu, of_processor


def kernel_rate(encoder: GpuEncoder, forest: Forest) -> float:
    """Return trees per second of the GPU's own work."""
    import torch

    with open_threads(-1) as threads:
        row = encoder._composition.labels.rows(forest.labels, threads)
        root_decay = encoder.spec.decay**0.5
        operations = list_operations(forest.arity, forest.offsets, forest.label, row, root_decay, threads)
    parts = list(encoder._composition.send(operations))
    out = torch.empty((len(forest), encoder.spec.n_components), device=encoder.device)

    def run() -> None:
        for first, last, sent in parts:
            encoder._composition.run(sent, True, out[first:last])

    return len(forest) / seconds_on_gpu(run)


def whole_rate(encoder: GpuEncoder, forest: Forest) -> float:
    """Return trees per second from packed arrays to vectors on the GPU."""
    import torch

    out = torch.empty((len(forest), encoder.spec.n_components), device=encoder.device)
    encoder.encode(forest, out)
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        encoder.encode(forest, out)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return len(forest) / min(times)


def class_rate(encoder: GpuEncoder, forest: Forest) -> float:
    """Return trees per second from packed arrays to classes, by a linear model with six classes."""
    import torch

    weights = torch.randn((6, encoder.spec.n_components), device=encoder.device)
    times = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        scores = encoder.scores(forest, weights)
        scores.argmax(axis=1)
        times.append(time.perf_counter() - begin)
    return len(forest) / min(times[1:])


def measure_neighbours(encoder: GpuEncoder, count: int) -> None:
    """Print the time of finding the ten nearest of all trees, and the recall."""
    import torch

    parts = list(forests("questions", count))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([part.sizes for part in parts]))])
    label, arity = (np.concatenate([getattr(part, name) for part in parts]) for name in ("label", "arity"))
    vectors = encoder.encode(Forest(label, arity, offsets, parts[0].labels))
    some = torch.arange(0, count, max(1, count // SAMPLED), device=encoder.device)
    products = vectors[some] @ vectors.T
    products[torch.arange(len(some)), some] = -torch.inf
    expected = products.topk(NEIGHBOURS, dim=1).indices
    del products
    for elements in (None, 2048):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        rows, _ = nearest_tensors(vectors, k=NEIGHBOURS, elements=elements)
        torch.cuda.synchronize()
        took = time.perf_counter() - begin
        found = (rows[some][:, :, None] == expected[:, None, :]).any(dim=2).double().mean()
        print(
            f"{count:,} trees, candidates by {elements or 'all'} elements: {took:.1f} s, recall {found:.4f}"
        )


def measure_layer(vectorizer: DistributedTreeVectorizer, forest: Forest) -> None:
    """Print the rates of the encoder and of the layer, and what the layer copies from the GPU."""
    import torch

    from treedot.torch import DistributedTrees

    layer, encoder = DistributedTrees(vectorizer).to("cuda"), GpuEncoder(vectorizer.spec)
    batches = [forest[first : first + BATCH] for first in range(0, len(forest), BATCH)]
    best = {"encoder": np.inf, "layer": np.inf}
    for _ in range(ROUNDS + 1):
        for name, run in (("encoder", encoder.encode), ("layer", layer)):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for batch in batches:
                run(batch)
            torch.cuda.synchronize()
            best[name] = min(best[name], time.perf_counter() - begin)
    rates = {name: len(forest) / took for name, took in best.items()}
    print(f"{len(forest):,} trees in batches of {BATCH}:", end=" ")
    print(*(f"{name} {rate / 1e6:.2f} M trees/s" for name, rate in rates.items()), end="")
    print(f", ratio {rates['layer'] / rates['encoder']:.2f}")
    print(f"copied to the host: {copied_to_host(lambda: layer(batches[0])):,} bytes; ", end="")
    print(f"the vectors have {layer(batches[0]).nbytes:,}")


def copied_to_host(run: Callable[[], object]) -> int:
    """Return the number of bytes that a call copies from the GPU to the host, by PyTorch's profiler."""
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True
    ) as profile:
        run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    copies = [event for event in events if event.get("name", "").startswith("Memcpy")]
    assert copies  # the operations go to the GPU: otherwise nothing was recorded
    return sum(event["args"]["bytes"] for event in copies if "DtoH" in event["name"])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--trees", type=int, default=160_000, help="least trees; a corpus is repeated")
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument("--components", type=int, default=8192)
    parser.add_argument("--composition", default="mixed")
    parser.add_argument("--decay", type=float, default=0.4)
    parser.add_argument("--neighbours", type=int, metavar="TREES", help="number of trees to search among")
    parser.add_argument("--layer", action="store_true", help="compare treedot.torch with the encoder")
    options = parser.parse_args(arguments)
    if options.layer:
        some = corpus(options.data, "questions")
        some = Forest.concat(forests("questions", 5452))[:] if some is None else some
        vectorizer = DistributedTreeVectorizer(
            n_components=options.components, decay=options.decay, composition=options.composition, n_jobs=-1
        )
        measure_layer(vectorizer, Forest.concat([some] * max(1, options.trees // len(some))))
        return
    encoder = GpuEncoder(DenseSpec(options.components, options.decay, options.composition))
    if options.neighbours:
        measure_neighbours(encoder, options.neighbours)
        return
    for name in ("questions", "Penn sentences", "Java functions"):
        forest = corpus(options.data, name)
        if forest is None:
            continue
        if options.composition == "product":  # the CPU encodes the others
            forest = forest[(~wide_trees(forest)).nonzero()[0]]
        difference, of_gpu, of_processor = largest_differences(encoder, forest[:2000])
        times = max(1, options.trees // len(forest) // max(1, forest.n_nodes // len(forest) // 30))
        many = Forest.concat([forest] * times)
        kernel, whole, classes = (rate(encoder, many) for rate in (kernel_rate, whole_rate, class_rate))
        print(
            f"{name:12} {len(many):9,} trees  difference {difference:.1e}"
            f" ({of_gpu:.1e} and {of_processor:.1e} from float64)"
            f"  GPU {kernel / 1e6:6.2f} M trees/s  from arrays {whole / 1e6:6.2f} M,"
            f" to classes {classes / 1e6:6.2f} M",
            flush=True,
        )


if __name__ == "__main__":
    main()
