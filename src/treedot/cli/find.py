"""The commands that find: make and search an index, compare two units, cluster many."""

from __future__ import annotations

import argparse
import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treedot._pages.printable import printable
from treedot._storage.files import check_target, write_whole
from treedot._storage.locks import lock
from treedot.cli.pipes import show
from treedot.cli.progress import Count
from treedot.cli.units import (
    PAGE,
    Reading,
    code_files,
    digest,
    is_code,
    is_under,
    iter_units,
    main_language,
    place_of,
    read_query,
    real_path,
    report_skipped,
)
from treedot.clones.report.text import count_of
from treedot.errors import ParameterError, SourceError
from treedot.parameters import checked_integer
from treedot.readers.folders import Skipped
from treedot.trees import Forest

if TYPE_CHECKING:
    from treedot.search import TreeIndex

CODE_THRESHOLD = 0.8  # of clusters: among many functions, most have one beside them with a cosine of 0.6
NOTHING = (
    "folders are read as source code, or with --unit page as HTML (see also --language, --min-nodes); of XML "
    "and JSON, name the files, or make one file of trees by treedot convert"
)
EXPLAINED = 12  # productions of each kind that are listed


def index(options: argparse.Namespace) -> None:
    """Make an index of units, or bring one up to date."""
    from treedot.search import TreeIndex

    if not options.update:
        _build(options)
        return
    with lock(options.output):  # another process may be making it
        if os.path.exists(options.output):
            _update(TreeIndex.open(options.output), options)
        else:
            _build(options)


def _build(options: argparse.Namespace) -> None:
    from treedot.search import TreeIndex

    check_target(Path(options.output), *options.paths)
    if os.path.exists(options.output) and not options.overwrite:
        raise ParameterError(
            f"{options.output} exists: --update brings it up to date, --overwrite replaces it"
        )
    reading = _reading(options)
    skipped = Skipped()
    with Count() as count:
        forests = iter_units(options.paths, reading, on_skip=skipped, n_jobs=options.jobs, digest=digest)
        made = TreeIndex.build(
            _some(forests),
            options.output,
            overwrite=options.overwrite,
            reading=reading._asdict(),
            n_jobs=options.jobs,
            progress=count,
        )
    report_skipped(skipped)
    show(f"{count_of(len(made), 'unit')} in {options.output}")


def _some(forests: Iterator[Forest]) -> Iterator[Forest]:
    is_empty = True
    for forest in forests:
        is_empty = is_empty and not len(forest)
        yield forest
    if is_empty:
        raise SourceError(f"there is no tree to make an index of: {NOTHING}")


def _update(found: TreeIndex, options: argparse.Namespace) -> None:
    """Replace the units of the files of some paths that have changed, and remove those that are gone."""
    if options.unit or options.language or options.min_nodes:
        raise ParameterError(
            "--update reads as the index was made: leave out --unit, --language and --min-nodes"
        )
    reading = Reading.of(found.reading)
    columns = zip(found.column("file"), found.column("digest"), strict=True)
    old = {file: content for file, content in columns if isinstance(file, str)}
    known = {real_path(file): file for file in old}

    def name(path: str) -> str:
        """Return the name by which the index knows a file, however its path is written now."""
        return known.get(real_path(path), path)

    files = ((name(path), path) for path in code_files(options.paths, reading.language))
    same = {file for file, path in files if old.get(file) == digest(path)}
    tops = [real_path(path) for path in options.paths]
    changed = {file for file in old if file not in same and is_under(real_path(file), tops)}
    before, skipped = len(found), Skipped()
    with Count() as count:
        forests = iter_units(
            options.paths,
            reading,
            only=lambda path: name(path) not in same,
            on_skip=skipped,
            n_jobs=options.jobs,
            digest=digest,
        )
        found.update(_named(forests, name), files=changed, n_jobs=options.jobs, progress=count)
    report_skipped(skipped)
    show(f"{len(found):,} units in {options.output}, before {before:,}; {len(same):,} files were unchanged")


def _named(forests: Iterable[Forest], name: Callable[[str], str]) -> Iterator[Forest]:
    for forest in forests:
        names = {file: name(file) for file in set(forest.columns["file"])}
        forest.columns["file"] = [names[file] for file in forest.columns["file"]]
        yield forest


def search(options: argparse.Namespace) -> None:
    """Print the units of an index that are most like a query."""
    from treedot.clones import similarity
    from treedot.search import TreeIndex

    found = TreeIndex.open(options.index)
    checked_integer("-k", options.k, at_least=1)
    reading = Reading.of(found.reading)
    language = options.language or reading.language or main_language(found.column("language"))
    queries = read_query(options.query, reading, language)
    rows, cosines = found.search(queries, options.k, n_jobs=options.jobs)
    answers = []
    for i in range(len(queries)):
        trees = found.forest(rows[i])
        answers.append(
            [
                {
                    **{name: values[j] for name, values in trees.columns.items() if name != "digest"},
                    "row": int(row),
                    "cosine": round(float(cosines[i, j]), 4),
                    "similarity": round(similarity(queries[[i]], trees[[j]]), 4),
                    "place": place_of(trees, j),
                }
                for j, row in enumerate(rows[i])
            ]
        )
    if options.format == "json":
        shown = [{"query": place_of(queries, i), "found": answer} for i, answer in enumerate(answers)]
        print(json.dumps(shown, indent=2))
        return
    for i, answer in enumerate(answers):
        print(f"{place_of(queries, i)}\n  cosine  similarity")
        for one in answer:
            print(f"  {one['cosine']:6.3f}  {one['similarity']:10.3f}  {one['place']}")


def similar(options: argparse.Namespace) -> None:
    """Print how similar two units are, and what they share."""
    from treedot.search.comparison import compare

    language = options.language or _language_of_files(options)
    a, b = (read_query(text, Reading(), language, one=True, blurred=True) for text in (options.a, options.b))
    for text, forest in ((options.a, a), (options.b, b)):
        if len(forest) != 1:
            raise ParameterError(f"{text} holds {len(forest)} trees: give one, or use treedot search")
    found = compare(a, b)
    if options.format == "json":
        facts = found._asdict() | {"a": place_of(a, 0), "b": place_of(b, 0)}
        print(json.dumps(facts, indent=2))
        return
    print(f"A: {place_of(a, 0)}, {a.n_nodes} nodes\nB: {place_of(b, 0)}, {b.n_nodes} nodes\n")
    print(f"similarity     {found.similarity:.3f}  of all productions in either, this share occurs in both")
    print(f"cosine         {found.cosine:.3f}  of their rows of fragments")
    if found.agreement is not None:
        print(f"agreement      {found.agreement:.3f}  of all names and literals in either, the share in both")
    edits = "too large to tell" if found.edits is None else f"{found.edits:,}"
    print(f"edit distance  {edits}  nodes to insert, delete or label anew")
    if options.explain:
        _explain("in both", found.shared)
        _explain("in A alone", found.only_a)
        _explain("in B alone", found.only_b)


def _explain(title: str, productions: dict[str, int]) -> None:
    print(f"\n{title}: {count_of(sum(productions.values()), 'production')}")
    for text, times in list(productions.items())[:EXPLAINED]:
        print(f"  {times:4d} × {printable(text)}")
    if len(productions) > EXPLAINED:
        print(f"         and {len(productions) - EXPLAINED:,} others")


def _language_of_files(options: argparse.Namespace) -> str:
    from treedot.languages import language_of

    return language_of(options.a.split(":")[0]) or language_of(options.b.split(":")[0]) or "python"


def cluster(options: argparse.Namespace) -> None:
    """Write which units belong together, and a page that shows it."""
    from treedot.cli.cluster_page import cluster_counts, cluster_page
    from treedot.search import cluster_trees
    from treedot.search.clusters import THRESHOLD

    targets = [Path(path) for path in (options.output, options.html) if path]
    for target in targets:
        check_target(target, *options.paths)
    if len({target.resolve() for target in targets}) < len(targets):
        raise ParameterError("--output and --html name the same file: give two")
    skipped = Skipped()
    with Count() as count:
        units = iter_units(options.paths, _reading(options), on_skip=skipped, n_jobs=options.jobs)
        forest = count.over(units)
    report_skipped(skipped)
    for target in targets:
        check_target(target, *set(forest.columns.get("file", ())))
    if not len(forest):
        raise SourceError(f"there is no unit to cluster: {NOTHING}")
    threshold = options.threshold
    if threshold is None:
        of_code = options.unit != PAGE and any(map(is_code, options.paths))
        threshold = CODE_THRESHOLD if of_code else THRESHOLD
    found = cluster_trees(forest, min_size=options.min_size, threshold=threshold, n_jobs=options.jobs)
    with (
        write_whole(options.output) as aside,
        aside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file,
    ):
        writer = csv.writer(file)
        places = [name for name in ("file", "start", "end", "name") if name in forest.columns]
        writer.writerow(["id", *places, "cluster", "size", "medoid", "spread"])
        for i, label in enumerate(found.labels.tolist()):
            known = [forest.columns[name][i] for name in places]
            about: list[Any] = [-1, "", "", ""]
            if label >= 0:
                about = [label, found.sizes[label], found.medoids[label], f"{found.spreads[label]:.4f}"]
            writer.writerow([i, *known, *about])
    if options.html:
        with write_whole(options.html) as aside:
            aside.write_text(cluster_page(forest, found, place_of), encoding="utf-8")
    print(cluster_counts(found))


def _reading(options: argparse.Namespace) -> Reading:
    min_nodes = checked_integer("--min-nodes", options.min_nodes or 1, at_least=1)
    return Reading(unit=options.unit or "function", min_nodes=min_nodes, language=options.language)
