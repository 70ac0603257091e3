"""Use of the machine: threads of BLAS, and memory."""

from __future__ import annotations

import ctypes
import gc
import re
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from threadpoolctl import ThreadpoolController

from dpviz.core.number_text import decimals

# --- BLAS -----------------------------------------------------------------------------------------


@cache
def _threadpools() -> ThreadpoolController:
    # Cache this object: finding the loaded libraries takes milliseconds.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread at once; used as a context manager, lift the limit at the end."""
    limited: AbstractContextManager[object] = _threadpools().limit(limits=1, user_api="blas")
    return limited


@cache
def kernel() -> str:
    """Return the BLAS libraries in use with their kernels, such as ``openblas 0.3.30 Haswell``.

    A library picks a kernel by the processor. Other kernels add in another order, so numbers of the
    same seed differ from about the twelfth digit on.
    """
    import scipy.linalg  # noqa: F401  # brings a library of its own, which has to be there by now

    kernels = {
        " ".join(str(library.get(fact)) for fact in ("internal_api", "version", "architecture"))
        for library in ThreadpoolController().info()
        if library["user_api"] == "blas"
    }
    return ", ".join(sorted(kernels))


# --- memory ---------------------------------------------------------------------------------------


_ARENA_MAX = -8  # This is the number of glibc's option M_ARENA_MAX.


def share_heaps() -> None:
    """Let all threads share two heaps, instead of one heap each.

    The heap of an ended thread cannot free pages with scattered remains.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None)  # Only glibc has this function.
    if limit is not None:
        limit(ctypes.c_int(_ARENA_MAX), ctypes.c_int(2))


def give_back() -> None:
    """Collect garbage, and return free pages to the system if its allocators can.

    Python, Arrow and the C library keep freed memory for reuse. On a server that many people have
    left, freed memory would be most of what it holds.
    """
    import pyarrow as pa  # Import this here, because no other function needs it.

    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # Only glibc has this function.
    if trim is not None:
        trim(ctypes.c_size_t(0))


_SYSTEM = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def free_bytes(system: Path = _SYSTEM, group: Path = _GROUP) -> int | None:
    """Return the memory in bytes that a process may still take, or None if unknown.

    This is the smaller of the system's free memory and the rest of a container's limit.

    Parameters
    ----------
    system, group : Path
        Paths of the files in which Linux reports memory.
    """
    # Ignore missing files: a machine with neither file has no known memory limit.
    limits = []
    try:
        line = re.search(r"^MemAvailable:\s+(\d+) kB", system.read_text(), re.MULTILINE)
        if line:
            limits.append(1024 * int(line[1]))
    except OSError:
        pass
    try:
        limit, used = (
            (group / f"memory.{name}").read_text().strip() for name in ("max", "current")
        )
        # A container may have less free memory than its host, so take the smaller value.
        if limit != "max":
            limits.append(max(int(limit) - int(used), 0))
    except OSError:  # Without a container or a limit, this file does not exist.
        pass
    return min(limits, default=None)


def gigabytes(size: float) -> str:
    """Return a size in words."""
    return f"{decimals(size / 1e9, 1)} GB"


def too_much(size: float) -> str | None:
    """Return why ``size`` bytes are unavailable, or None if they are available."""
    free = free_bytes()
    if free is None or size <= free:
        return None
    return f"about {gigabytes(size)} of memory, and {gigabytes(free)} are free here"
