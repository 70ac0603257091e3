"""Store finished cells on disk, under a key of everything that they depend on.

A cell's key is a digest of everything its numbers depend on: moments, problem, variant, budget,
seed, trials, metrics and the source of the core. The digest also covers the versions of NumPy,
SciPy and scikit-learn, and the kernel of BLAS, which changes the last digits between processors.
One small file per cell is written under another name and renamed, so that an interrupted run leaves
complete files only. Files hold utility metrics of the user's data, which are not private: the
folder is the user's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import ByLength
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import PACKAGE, atomic_write, cannot_write, user_cache
from dpviz.core.metrics import Metric, metric_of
from dpviz.core.plugins import code_digest
from dpviz.core.resources import kernel
from dpviz.mechanisms import Mechanism
from dpviz.preparation.bounding import BoundedTable, Prepared
from dpviz.preparation.passes import RowsDigest
from dpviz.preparation.prepared import Measured
from dpviz.simulation.simulate import Cell

CAP_BYTES = 512 << 20
"""A folder with more bytes than this loses its least recently used cells after a run."""

_MAGIC = b"dpviz cell 1\n"
_DIGEST = 32
_PART_SECONDS = 3600.0
# These modules for charts, messages and storage change no number. Paths start in the package.
_NOT_SOURCE = (
    "auditing", "releasing", "report", "lessons", "studies", "papers", "cli",
    "extend/checks.py", "extend/testing.py", "_app",
    "simulation/store.py", "core/files.py", "core/platform.py",
)  # fmt: skip


def default_folder() -> Path:
    """Return this user's folder for cached cells."""
    return user_cache() / "cells"


@cache
def source_digest(package: Path = PACKAGE) -> str:
    """Return the digest of the core's source and of the libraries behind its numbers.

    Parameters
    ----------
    package : Path
        Folder of the package: the digest covers its source, except code that changes no number.
    """
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        if not any(inside.is_relative_to(aside) for aside in _NOT_SOURCE):
            digest.update(inside.as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    for library in ("numpy", "scipy", "scikit-learn"):
        digest.update(version(library).encode() + b"\0")
    return digest.hexdigest()


class Keys:
    """Keys of the cells of one measured table, whose arrays are digested once."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._digest: dict[bool, str] = {}

    def key(self, cell: Cell, metrics: tuple[str | Metric, ...]) -> str:
        """Return the key of a cell."""
        with_rows = cell.mechanism.needs_rows or cell.picture is not None
        if with_rows not in self._digest:
            self._digest[with_rows] = data_digest(self._measured, with_rows)
        facts = [
            source_digest(),
            kernel(),
            self._digest[with_rows],
            cell.mechanism.text,
            own_code(cell.mechanism),
            repr(cell.problem),
            repr(cell.budget),
            repr(cell.seed),
            repr(cell.trials),
            repr(cell.private),
            repr(cell.free),
            repr(cell.picture),
            repr(tuple(metric_of(one).key for one in metrics)),
            *_measured_by(metrics),
        ]
        return hashlib.blake2b("\x1f".join(facts).encode(), digest_size=20).hexdigest()


def own_code(mechanism: Mechanism) -> str:
    """Return a digest of a mechanism's code; empty for dpviz's, which `source_digest` covers."""
    return "" if mechanism.ours else f"{code_digest(type(mechanism))} {mechanism.info}"


def _measured_by(metrics: tuple[str | Metric, ...]) -> list[str]:
    """Return digests of the code of external metrics."""
    functions = (metric_of(one).compute for one in metrics)
    return [
        code_digest(one) for one in functions if not one.__module__.startswith(f"{PACKAGE.name}.")
    ]


def data_digest(measured: Measured, with_rows: bool | None = None) -> str:
    """Return a digest of a prepared table: its facts, its moments and, if needed, its rows.

    Parameters
    ----------
    measured : Measured
    with_rows : bool, optional
        Whether the digest covers the rows; by default if they are in memory.
    """
    if with_rows is None:
        with_rows = isinstance(measured, Prepared) and measured.has_rows
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((measured.n, measured.d, measured.row_bound, measured.domain)).encode())
    arrays = [measured.moment.kept, measured.reference.kept]
    if with_rows:
        moment = measured.moment_with_rows
        if moment.rows is not None:
            arrays.append(moment.rows)
        else:
            assert isinstance(moment.lengths, ByLength)
            arrays += moment.lengths.arrays
    if measured.raw is not None and measured.public is not None:
        public = measured.public
        digest.update(repr((public.row_bound, public.centered)).encode())
        arrays += [measured.raw, public.low, public.high, public.center, public.scale]
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def rows_digest(measured: Measured) -> str:
    """Return a digest of a table's data as read, equal for all kernels of BLAS.

    The digest covers the rows as read, with their names and bounds; their preparation is among the
    options of an answer. A table in batches is read again for the digest. A plan has no rows, so
    its moment is used.
    """
    if isinstance(measured, BoundedTable):
        rows, names = measured.rows_read, measured.passes.columns
        bounds = measured.passes.bounds
    else:
        rows, names, bounds = RowsDigest(), measured.columns, None
        rows.add(measured.moment.A, 0)
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((rows.value, rows.rows, names)).encode())
    if bounds is not None:
        digest.update(np.ascontiguousarray(bounds).tobytes())
    return digest.hexdigest()


class Store:
    """A folder of finished cells.

    Parameters
    ----------
    folder : Path
        Path of the folder, created for this user alone if it does not exist.
    cap : int
        Maximum number of bytes that `prune` leaves.

    Raises
    ------
    InvalidSetting
        If the folder cannot be created or written.
    """

    def __init__(self, folder: Path, cap: int = CAP_BYTES) -> None:
        self.folder, self._cap = folder, cap
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            raise self._not_writable() from None
        if not os.access(folder, os.W_OK):
            raise self._not_writable()

    def _not_writable(self) -> InvalidSetting:
        return InvalidSetting(
            "cache", "a folder that dpviz can write, or none", str(self.folder), "--cache"
        )

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.cell"

    def get(self, key: str) -> dict[str, FloatArray] | None:
        """Return the metrics of a cell, or None if its file is absent or incomplete."""
        path = self._path(key)
        try:
            metrics = _unpack(path.read_bytes(), key)
        except OSError:
            return None
        if metrics is not None:
            with contextlib.suppress(OSError):  # A read-only folder raises an error; ignore it.
                os.utime(path)  # A file used just now is the last one that `prune` removes.
        return metrics

    def put(self, key: str, metrics: Mapping[str, FloatArray]) -> None:
        """Store the metrics of a finished cell; the file appears complete or not at all."""
        path = self._path(key)
        try:
            path.parent.mkdir(exist_ok=True, mode=0o700)
        except OSError as error:
            raise cannot_write(path.parent, error) from None
        with atomic_write(path, private=True) as aside:
            aside.write_bytes(_pack(metrics, key))

    def prune(self) -> None:
        """Remove the least recently used cells beyond the cap, and parts left by a crash."""
        files = []
        for path in self.folder.glob("??/*"):
            try:
                stat = path.stat()
                # Writing never takes an hour, so the process that began this old file was killed.
                if path.name.startswith(".") and stat.st_mtime < time.time() - _PART_SECONDS:
                    path.unlink(missing_ok=True)
                    continue
            except OSError:  # Another process removed the file, or it is a folder.
                continue
            files.append((stat.st_mtime, stat.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files, key=lambda item: item[0]):
            if total <= self._cap:
                break
            try:
                path.unlink(missing_ok=True)
            except OSError:  # It is a folder, or the file belongs to another user.
                continue
            total -= size


def _pack(metrics: Mapping[str, FloatArray], key: str) -> bytes:
    header = json.dumps({"key": key, "metrics": {name: len(v) for name, v in metrics.items()}})
    body = header.encode() + b"\n"
    body += b"".join(values.astype("<f8").tobytes() for values in metrics.values())
    return _MAGIC + hashlib.blake2b(body, digest_size=_DIGEST).digest() + body


def _unpack(content: bytes, key: str) -> dict[str, FloatArray] | None:
    """Return the packed metrics, or None if the digest does not match the content."""
    start = len(_MAGIC) + _DIGEST
    body = content[start:]
    digest = hashlib.blake2b(body, digest_size=_DIGEST).digest()
    if content[:start] != _MAGIC + digest:
        return None
    line, _, numbers = body.partition(b"\n")
    header = json.loads(line)
    if header["key"] != key:
        return None
    values = np.frombuffer(numbers, dtype="<f8").astype(np.float64)
    metrics, at = {}, 0
    for name, size in header["metrics"].items():
        metrics[name] = values[at : at + size]
        at += size
    return metrics
