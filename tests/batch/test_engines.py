"""Every engine gives the same bytes, and a shard that kills its worker takes no other with it."""

import contextlib
import itertools
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from unittest import mock

import pytest

pytest.importorskip("pyarrow")

from components import component
from strategies import random_forest
from treedot import FragmentVectorizer, batch
from treedot._runtime.jit import COMPILED
from treedot.batch import dask_ray, liveness
from treedot.batch.engines import LocalProcesses
from treedot.cli import main
from treedot.errors import IncompleteError
from trouble import POISONED, deadly_shard

pytestmark = pytest.mark.slow

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
    batch.encode(trees, out, VECTORIZER, client, **settings)
    return parts(out)


@pytest.fixture
def expected(trees, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        return encoded(trees, tmp_path / "expected", pool)


def check_that_others_finish(trees, out, client, expected, monkeypatch):
    """Run with a shard that always kills its worker, and with one that does so once; then without."""
    name = list(expected)[POISONED]
    with monkeypatch.context() as patch:
        patch.setattr("treedot.batch.run.do_shard", deadly_shard)
        with pytest.raises(IncompleteError, match=r"1 of 6 shards failed(.*\n)*.*worker died twice"):
            encoded(trees, out, client)
    assert parts(out) == {other: content for other, content in expected.items() if other != name}
    found = batch.status(out)
    assert found.missing == list(found.failed) == [name]
    assert encoded(trees, out, client) == expected
    assert sorted(os.listdir(out)) == ["_treedot.json", "_vectorizer", *expected]


def check_duplicates(trees, folder, client):
    """Find near-duplicates in another way, too, and compare."""
    found = batch.find_duplicates(trees, folder / "duplicates", client, **SMALL)
    with ThreadPoolExecutor(1) as pool:
        assert batch.find_duplicates(trees, folder / "same", pool, **SMALL).equals(found)
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
    distributed = component("dask")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),  # or it would try four times
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert encoded(trees, tmp_path / "out", client) == expected
        check_that_others_finish(trees, tmp_path / "poisoned", client, expected, monkeypatch)
        options = ["--engine", "dask", "--scheduler", cluster.scheduler_address, "--n-features", "4096"]
        assert main(["batch", "encode", str(trees), "-o", f"{tmp_path}/command/", *options]) == 0
        assert parts(tmp_path / "command") == expected
        check_duplicates(trees, tmp_path, client)


COLD = """
import sys
from treedot import FragmentVectorizer, batch

if __name__ == "__main__":
    batch.encode(sys.argv[1], sys.argv[2], FragmentVectorizer(n_features=2**12), workers=2)
"""


def test_on_a_machine_without_compiled_code_one_worker_compiles_for_all(trees, tmp_path, expected):
    if not COMPILED:
        pytest.skip("nothing is compiled")
    program = tmp_path / "program.py"
    program.write_text(COLD)
    numba = {"NUMBA_CACHE_DIR": str(tmp_path / "compiled"), "NUMBA_DEBUG_CACHE": "1"}
    cold = os.environ | numba | {"TREEDOT_COMPILE": "always"}
    arguments = [sys.executable, program, trees, tmp_path / "out"]
    done = subprocess.run(arguments, env=cold, capture_output=True, text=True, check=True)
    assert parts(tmp_path / "out") == expected
    saved = re.findall(r"data saved to '(.*)'", done.stdout + done.stderr)
    assert len(saved) == len(set(saved)) > 10


def test_ray(trees, tmp_path, expected, monkeypatch):
    ray = component("ray")
    (tmp_path / "token").write_text(secrets.token_hex(32))  # or Ray would put one into the home folder
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # workers import ``trouble``
    handler = signal.getsignal(signal.SIGTERM)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert encoded(trees, tmp_path / "out", ray) == expected
        check_that_others_finish(trees, tmp_path / "poisoned", ray, expected, monkeypatch)
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, handler)  # Ray leaves its own


@contextlib.contextmanager
def dask_scheduler(tmp_path):
    """Start a Dask scheduler, without workers; yield its process and its address."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    module = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    options = ["--dashboard-address", ":0", "--no-show", "--scheduler-file", str(file)]
    with subprocess.Popen([*module, *options], stderr=subprocess.DEVNULL) as process:
        try:
            while not (file.exists() and file.read_text().endswith("}")):
                assert process.poll() is None
                time.sleep(0.05)
            yield process, json.loads(file.read_text())["address"]
        finally:
            process.kill()


def end_when_planned(process, how, folder):
    """Send a signal to a process when a folder has its plan."""

    def wait():
        while not (folder / "_treedot.json").exists():
            time.sleep(0.02)
        process.send_signal(how)

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dask_scheduler_that_goes_away_is_reported_and_the_folder_resumed(
    trees, tmp_path, expected, monkeypatch, how, capsys
):
    monkeypatch.setattr(liveness, "SCHEDULER_SECONDS", 1.0)
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 0.1)
    out = tmp_path / "out"
    with dask_scheduler(tmp_path) as (process, address):
        end_when_planned(process, how, out)
        options = ["--engine", "dask", "--scheduler", address, "--n-features", "4096"]
        assert main(["batch", "encode", str(trees), "-o", f"{out}/", *options]) == 1
    said = capsys.readouterr().err
    assert f"the Dask scheduler {address} has not answered for 1 s. Finished parts are kept" in said
    assert "Traceback" not in said
    with ThreadPoolExecutor(2) as pool:
        assert encoded(trees, out, pool) == expected


def test_the_executor_of_a_dask_client_is_watched_as_the_client_is(trees, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(liveness, "SCHEDULER_SECONDS", 1.0)
    with dask_scheduler(tmp_path) as (process, address), distributed.Client(address) as client:
        end_when_planned(process, signal.SIGKILL, tmp_path / "out")
        with pytest.raises(IncompleteError, match="has not answered for 1 s"):
            encoded(trees, tmp_path / "out", client.get_executor())


def test_no_scheduler_is_reported(trees, tmp_path, capsys):
    pytest.importorskip("distributed")  # before one of its settings is changed: it adds the others
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "200ms"}):
        options = ["--engine", "dask", "--scheduler", "tcp://127.0.0.1:9"]
        assert main(["batch", "encode", str(trees), "-o", f"{tmp_path}/out/", *options]) == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in capsys.readouterr().err


def test_workers_that_are_gone_are_waited_for_as_long_as_is_stated(monkeypatch):
    now, answers = [0.0], [0, 0, 2, 0, 0, 1, 0, 0, 0]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])
    alive = liveness.Liveness("the scheduler", lambda: answers.pop(0))
    for seconds in (0, 1000, 1000, 100, 10, 10, 100, 19):  # before the first worker, any time
        now[0] += seconds
        assert alive.look()
    now[0] += 2
    with pytest.raises(IncompleteError, match=r"has had no worker for 120 s\..*: start workers"):
        alive.look()


def test_a_scheduler_that_answers_again_in_time_is_not_given_up(monkeypatch):
    now, alive_again = [0.0], [False]
    monkeypatch.setattr(liveness.time, "monotonic", lambda: now[0])

    def ask():
        if not alive_again[0]:
            raise ConnectionError
        return 1

    alive = liveness.Liveness("the scheduler", ask)
    for seconds, answers in ((29, False), (0, True), (20, False), (9, False)):
        now[0] += seconds
        alive_again[0] = answers
        assert alive.look() is answers
    now[0] += 2
    with pytest.raises(IncompleteError, match=r"the scheduler has not answered for 30 s\."):
        alive.look()


class LocalRayletDiedError(Exception):
    """As Ray's own."""


class DyingRay:
    """What treedot uses of ray, of which something dies when the first task is waited for."""

    def __init__(self, dies):
        self.dies, self.head = dies, socket.create_server(("127.0.0.1", 0))

    def remote(self, **options):
        return lambda function: mock.Mock(remote=lambda *task: task)

    def wait(self, running, num_returns, timeout):
        self.head.close()
        if self.dies == "client":
            raise ConnectionError("the channel is closed")
        return ([], running) if self.dies == "head" else (running[:1], running[1:])

    def get(self, ref):
        raise LocalRayletDiedError

    def get_runtime_context(self):
        return mock.Mock(gcs_address="{}:{}".format(*self.head.getsockname()))

    def cluster_resources(self):
        assert self.dies != "head", "Ray would end the process"


@pytest.mark.parametrize(
    ("dies", "said"),
    [
        ("head", "the head of the Ray cluster has not answered for 0 s"),
        ("node", "the Ray node of this process has died"),
        ("client", r"the Ray cluster is lost \(the channel is closed\)"),
    ],
)
def test_a_ray_cluster_that_is_gone_is_reported(trees, tmp_path, expected, monkeypatch, dies, said):
    monkeypatch.setattr(liveness, "SCHEDULER_SECONDS", 0.0)
    monkeypatch.setattr(dask_ray, "_answer_seconds", lambda: 5.0)
    with pytest.raises(IncompleteError, match=rf"{said}\. Finished parts are kept"):
        encoded(trees, tmp_path / "out", DyingRay(dies))
    with ThreadPoolExecutor(2) as pool:
        assert encoded(trees, tmp_path / "out", pool) == expected


class ForgetfulDask:
    """What treedot uses of a Dask client, whose scheduler loses its first tasks, and is away for a time."""

    status = "running"
    scheduler = mock.Mock(address="tcp://head")

    def __init__(self, loses, away=0):
        self.loses, self.away, self.keys = loses, away, itertools.count()

    def get_executor(self):
        raise NotImplementedError

    def submit(self, function, *task, pure):
        self.loses -= 1
        lost = self.loses >= 0
        future = mock.Mock(status="cancelled" if lost else "finished", key=next(self.keys))
        future.result = lambda timeout: function(*task)
        future.add_done_callback = lambda callback: callback(future)
        return future

    def sync(self, *_, **__):
        self.away -= 1
        if self.away >= 0:
            raise TimeoutError
        return {"worker": 1}

    def cancel(self, futures):
        raise AssertionError("everything is done")


def test_tasks_that_a_scheduler_lost_are_given_to_it_once_more(trees, tmp_path, expected, monkeypatch):
    monkeypatch.setattr(liveness, "LOOK_SECONDS", 0.01)
    assert encoded(trees, tmp_path / "out", ForgetfulDask(SHARDS, away=3)) == expected


def test_tasks_that_a_scheduler_loses_again_and_again_fail(trees, tmp_path, monkeypatch):
    with pytest.raises(IncompleteError, match=r"6 of 6 shards failed(.*\n)*.*twice \(CancelledError: the"):
        encoded(trees, tmp_path / "out", ForgetfulDask(10**6))


def test_a_client_that_is_closed_is_reported(trees, tmp_path):
    closed = ForgetfulDask(0)
    closed.submit = mock.Mock(side_effect=RuntimeError("it is closed"))
    with pytest.raises(IncompleteError, match="the Dask client does not accept tasks: it is closed"):
        encoded(trees, tmp_path / "out", closed)


def test_the_reason_why_a_worker_died_is_one_line(trees, tmp_path):
    with pytest.raises(IncompleteError, match=r"worker died twice \(BrokenProcessPool: one two \)\)"):
        encoded(trees, tmp_path / "out", Broken("one\n    two\n    )"))


class Broken(Executor):
    """An executor whose workers die, and that takes no more tasks then."""

    def __init__(self, why="a process died"):
        self.futures, self.why = [], why

    def submit(self, function, *task):
        if len(self.futures) > 3:
            raise BrokenProcessPool(self.why)
        self.futures.append(Future())
        self.futures[-1].set_exception(BrokenProcessPool(self.why))
        return self.futures[-1]


def test_an_executor_that_breaks_ends_in_a_clear_error(trees, tmp_path, expected):
    with pytest.raises(IncompleteError, match=r"6 of 6 shards failed(.*\n)*.*worker died twice"):
        encoded(trees, tmp_path / "out", Broken())
    with ThreadPoolExecutor(2) as pool:
        assert encoded(trees, tmp_path / "out", pool) == expected


class RayLike:
    """What treedot uses of ray, with threads."""

    def __init__(self):
        self.pool, self.most = ThreadPoolExecutor(2), 0

    def remote(self, **options):
        return lambda function: RemoteFunction(self.pool, function)

    def wait(self, running, num_returns, timeout):
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
    monkeypatch.setattr("treedot.batch.dask_ray.IN_FLIGHT", 2)
    ray = RayLike()
    assert encoded(trees, tmp_path / "out", ray) == expected
    assert ray.most == 2


def test_processes_end_with_the_one_that_started_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import os, time
            from treedot.batch.engines import LocalProcesses

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
