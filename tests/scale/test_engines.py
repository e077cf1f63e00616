"""Every engine gives the same bytes, and a shard that kills its worker takes no other with it."""

import os
import re
import secrets
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

pytest.importorskip("pyarrow")

from strategies import random_forest
from treedot import FragmentVectorizer, IncompleteError, scale
from treedot.cli import main
from treedot.files import first_alone
from treedot.jit import COMPILED
from treedot.scale.engines import LocalProcesses
from trouble import POISONED, deadly_shard

VECTORIZER = FragmentVectorizer(n_features=2**12)
SHARDS = 6
SMALL = {"threshold": 0.05, "min_nodes": 3}  # settings by which these trees have near-duplicates


@pytest.fixture
def trees(tmp_path):
    """Return a folder with a file for every shard."""
    (tmp_path / "in").mkdir()
    for k in range(SHARDS):
        (tmp_path / "in" / f"{k}.mrg").write_text("\n".join(map(str, random_forest(k, 20))))
    return tmp_path / "in"


def parts(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def encoded(trees, out, client=None, **settings):
    scale.encode(trees, out, VECTORIZER, client, **settings)
    return parts(out)


@pytest.fixture
def expected(trees, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        return encoded(trees, tmp_path / "expected", pool)


def check_that_others_finish(trees, out, client, expected, monkeypatch):
    """Run with a shard that always kills its worker, and with one that does so once; then without."""
    name = list(expected)[POISONED]
    with monkeypatch.context() as patch:
        patch.setattr("treedot.scale.run.do_shard", deadly_shard)
        with pytest.raises(IncompleteError, match=r"1 of 6 shards failed(.*\n)*.*worker died, twice"):
            encoded(trees, out, client)
    assert parts(out) == {other: content for other, content in expected.items() if other != name}
    found = scale.status(out)
    assert found.missing == list(found.failed) == [name]
    assert encoded(trees, out, client) == expected
    assert sorted(os.listdir(out)) == ["_treedot.json", "_vectorizer", *expected]


def check_duplicates(trees, folder, client):
    """Find near-duplicates in another way, too, and compare."""
    found = scale.find_duplicates(trees, folder / "duplicates", client, **SMALL)
    with ThreadPoolExecutor(1) as pool:
        assert scale.find_duplicates(trees, folder / "same", pool, **SMALL).equals(found)
    assert len(found) > 10
    assert parts(folder / "same") == parts(folder / "duplicates")
    results = [(folder / name / "duplicates.arrow").read_bytes() for name in ("same", "duplicates")]
    assert results[0] == results[1]


def test_local_processes(trees, tmp_path, expected, monkeypatch):
    with LocalProcesses(2) as pool:
        assert encoded(trees, tmp_path / "out", pool) == expected
        check_that_others_finish(trees, tmp_path / "poisoned", pool, expected, monkeypatch)
        check_duplicates(trees, tmp_path, pool)


def test_dask(trees, tmp_path, expected, monkeypatch):
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # or it would try four times
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert encoded(trees, tmp_path / "out", client) == expected
        check_that_others_finish(trees, tmp_path / "poisoned", client, expected, monkeypatch)
        options = ["--engine", "dask", "--scheduler", cluster.scheduler_address, "--n-features", "4096"]
        assert main(["encode", str(trees), "-o", f"{tmp_path}/command/", *options]) == 0
        assert parts(tmp_path / "command") == expected
        check_duplicates(trees, tmp_path, client)


COLD = """
import sys
from treedot import FragmentVectorizer, scale

if __name__ == "__main__":
    scale.encode(sys.argv[1], sys.argv[2], FragmentVectorizer(n_features=2**12), workers=2)
"""


def test_on_a_machine_without_compiled_code_one_worker_compiles_for_all(trees, tmp_path, expected):
    if not COMPILED:
        pytest.skip("nothing is compiled")
    program = tmp_path / "program.py"
    program.write_text(COLD)
    cold = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "NUMBA_DEBUG_CACHE": "1"}
    arguments = [sys.executable, program, trees, tmp_path / "out"]
    done = subprocess.run(arguments, env=cold, capture_output=True, text=True, check=True)
    assert parts(tmp_path / "out") == expected
    saved = re.findall(r"data saved to '(.*)'", done.stdout + done.stderr)
    assert len(saved) == len(set(saved)) > 10


def test_the_first_process_is_alone_and_the_others_go_on_together(tmp_path):
    inside, first, second = [], threading.Event(), threading.Barrier(2)

    def wait(begun, go_on):
        with first_alone(tmp_path):
            begun()
            inside.append(go_on())

    with ThreadPoolExecutor(3) as pool:
        started = threading.Event()
        one = pool.submit(wait, started.set, lambda: first.wait(60))
        started.wait(60)
        others = [pool.submit(wait, lambda: None, lambda: second.wait(60)) for _ in range(2)]
        time.sleep(0.05)
        assert inside == []
        first.set()
        for future in (one, *others):
            future.result(60)
    assert inside[0] is True
    assert sorted(inside[1:]) == [0, 1]  # both were inside at the same time


def test_ray(trees, tmp_path, expected, monkeypatch):
    ray = pytest.importorskip("ray")
    (tmp_path / "token").write_text(secrets.token_hex(32))  # or Ray would put one into the home folder
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert encoded(trees, tmp_path / "out", ray) == expected
        check_that_others_finish(trees, tmp_path / "poisoned", ray, expected, monkeypatch)
    finally:
        ray.shutdown()


class Broken(Executor):
    """An executor whose workers die, and that takes no more tasks then."""

    def __init__(self):
        self.futures = []

    def submit(self, function, *task):
        if len(self.futures) > 3:
            raise BrokenProcessPool("no more")
        self.futures.append(Future())
        self.futures[-1].set_exception(BrokenProcessPool("a process died"))
        return self.futures[-1]


def test_an_executor_that_breaks_ends_in_a_clear_error(trees, tmp_path, expected):
    with pytest.raises(IncompleteError, match=r"6 of 6 shards failed(.*\n)*.*worker died, twice"):
        encoded(trees, tmp_path / "out", Broken())
    with ThreadPoolExecutor(2) as pool:
        assert encoded(trees, tmp_path / "out", pool) == expected


class RayLike:
    """What treedot uses of ray, with threads."""

    def __init__(self):
        self.pool, self.most = ThreadPoolExecutor(2), 0

    def remote(self, **options):
        return lambda function: RemoteFunction(self.pool, function)

    def wait(self, running, num_returns):
        self.most = max(self.most, len(running))
        running[0].exception()
        return running[:num_returns], running[num_returns:]

    def get(self, future):
        return future.result()


class RemoteFunction:
    def __init__(self, pool, function):
        self.pool, self.function = pool, function

    def remote(self, *task):
        return self.pool.submit(self.function, *task)


def test_ray_gets_a_bounded_number_of_tasks(trees, tmp_path, expected, monkeypatch):
    monkeypatch.setattr("treedot.scale.engines.IN_FLIGHT", 2)
    ray = RayLike()
    assert encoded(trees, tmp_path / "out", ray) == expected
    assert ray.most == 2


def test_processes_end_with_the_one_that_started_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os, time
            from treedot.scale.engines import LocalProcesses

            if __name__ == "__main__":
                pool = LocalProcesses(1)
                print(pool.submit(os.getpid).result(), flush=True)
                time.sleep(600)
            """
        )
    )
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        process.kill()
    for _ in range(600):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        if state(worker) == "Z":  # it ended, and waits for whoever inherited it
            return
        time.sleep(0.05)
    assert not worker, "the worker still runs"


def state(process):
    with open(f"/proc/{process}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]
