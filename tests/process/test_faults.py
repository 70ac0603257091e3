"""Kills, full disks, closed outputs, interrupts and damage lose no data and give one message."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dpviz.core.errors import CannotWrite
from dpviz.simulation.store import Store
from tests.process.fatal import gone

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ["sweep", "iris", "--over", "epsilon", "--values", "0.1:10:12", "--trials", "40",
         "--mechanism", "gaussian", "--mechanism", "wishart_difference"]  # fmt: skip


# Discard output: a worker that outlives the command would keep its pipes open.
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def dpviz(*words: str, **options: object) -> subprocess.Popen[str]:
    """Start the command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "dpviz", *words],
        cwd=ROOT, text=True,
        **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options),  # type: ignore[call-overload]
    )  # fmt: skip


def sentence_of(process: subprocess.Popen[str], status: int) -> str:
    """Return the one-line message with which a command ends."""
    _, message = process.communicate(timeout=120)
    assert process.returncode == status, message
    assert "Traceback" not in message
    (line,) = message.strip().splitlines()
    assert line.startswith("dpviz: ")
    return line


def no_more_than(size: int) -> object:
    """Return a function that prevents a process from writing files above a size."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("words", ["datasets", "--version", "compare --help"])
def test_a_full_output_is_one_sentence(words: str) -> None:
    """A full output gives one message, also for argparse's help and text buffered until exit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        line = sentence_of(dpviz(*words.split(), stdout=full, env=environment), 2)
    assert "no space is left" in line


def test_a_closed_output_is_one_sentence() -> None:
    process = subprocess.Popen(
        f"exec {sys.executable} -m dpviz datasets >&-",
        shell=True, cwd=ROOT, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert "closed" in sentence_of(process, 2)


def test_a_disk_that_is_full_under_the_cache_costs_no_row(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    whole, _ = dpviz(*SWEEP, "--cache", "none").communicate(timeout=120)
    # A stored result of 40 repetitions needs about 2 kB, which exceeds the file limit here.
    full = dpviz(*SWEEP, "--cache", str(cache), preexec_fn=no_more_than(1_500))
    output, message = full.communicate(timeout=120)
    assert whole
    assert (full.returncode, output) == (0, whole)
    assert "are not kept for the next run: it would be larger than files may be." in message
    assert "Traceback" not in message
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_a_disk_that_is_full_midway_leaves_nothing_half_written(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("as it was")
    # A stored result of 40 repetitions needs about 10 kB; the table of results needs far more.
    process = dpviz(*SWEEP, "--out", str(out), "--cache", str(tmp_path / "cache"),
                    preexec_fn=no_more_than(60_000))  # fmt: skip
    assert "cannot be written" in sentence_of(process, 2)
    assert out.read_text() == "as it was"
    rest = [path for path in tmp_path.rglob("*") if path.is_file() and path != out]
    assert all(path.suffix == ".cell" for path in rest), rest


def test_a_read_only_cache_is_read_and_says_why_it_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, key = Store(tmp_path), "ab" + "3" * 38
    store.put(key, {"m": np.ones(3)})

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    for module, name in ((os, "open"), (os, "utime"), (Path, "unlink")):
        monkeypatch.setattr(module, name, refuse)
    content = store.get(key)
    assert content is not None
    assert content["m"].tolist() == [1, 1, 1]
    with pytest.raises(CannotWrite, match="the file system is read-only"):
        store.put("ab" + "4" * 38, {"m": np.ones(3)})
    Store(tmp_path, cap=1).prune()
    assert store.get(key) is not None


def test_two_writers_of_one_store_do_not_mix(tmp_path: Path) -> None:
    store, key = Store(tmp_path), "ef" + "2" * 38
    values = [np.full(20_000, float(j)) for j in range(2)]
    wrong = []

    def write(j: int) -> None:
        for _ in range(30):
            store.put(key, {"m": values[j]})
            content = store.get(key)
            if content is None or len(set(content["m"])) != 1:
                wrong.append(j)

    threads = [threading.Thread(target=write, args=(j,)) for j in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(list(tmp_path.rglob("*"))) == 2  # Only the folder and one whole result remain.


@pytest.mark.parametrize("when", ["loading", "working"])
def test_an_interrupt_is_one_line_also_while_it_loads(when: str, tmp_path: Path) -> None:
    cache, out = tmp_path / "cache", tmp_path / "o.csv"
    process = dpviz(*SWEEP, "--trials", "20000", "--out", str(out), "--cache", str(cache),
                    preexec_fn=interruptible)  # fmt: skip
    maps = Path(f"/proc/{process.pid}/maps")
    deadline = time.monotonic() + 100
    # Wait until the command has loaded NumPy's library, because Python itself has then started.
    while not (
        any(cache.rglob("*.cell")) if when == "working" else "multiarray" in maps.read_text()
    ):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130, message
    assert "Traceback" not in message
    assert "dpviz: interrupted" in message.strip().splitlines()[-1]
    assert not out.exists()


def interruptible() -> None:
    """Let a process that was started in the background receive interrupts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def children(pid: int) -> set[int]:
    """Return all processes that descend from a process."""
    pids: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            pids |= {int(folder.name)} | children(int(folder.name))
    return pids


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_kills_lose_nothing_and_workers_go_too(tmp_path: Path) -> None:
    """A sweep that is killed repeatedly ends with the same bytes as an uninterrupted sweep."""
    cache, out = tmp_path / "cache", tmp_path / "out.csv"
    words = [*SWEEP, "--trials", "400", "--workers", "2", "--cache", str(cache)]
    workers: set[int] = set()
    for kills in range(3):
        process = dpviz(*words, "--out", str(out), **QUIET)
        deadline = time.monotonic() + 60
        # Each time, wait for two more results; then kill between two settings or during one.
        while len(list(cache.rglob("*.cell"))) < 2 * kills + 1 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        workers |= children(process.pid)
        process.kill()
        process.wait()
        assert not out.exists()
    assert workers
    assert all(gone(worker) for worker in workers), "workers outlive who started them"
    for name, more in (
        ("out.csv", ["--cache", str(cache)]),
        ("whole.csv", ["--cache", "none", "--workers", "1"]),
    ):
        process = dpviz(*words, *more, "--out", str(tmp_path / name), **QUIET)
        process.wait(timeout=120)
        assert process.returncode == 0
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
