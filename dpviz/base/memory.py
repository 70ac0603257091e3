"""Free memory goes back to the system, and lies together until it does."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa

_ARENA_MAX = -8  # glibc's M_ARENA_MAX


def share_heaps() -> None:
    """Let all threads take from two heaps, where the C library would give each its own.

    The heap of a thread that has ended keeps what is scattered over it.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's own
    if limit is not None:
        limit(ctypes.c_int(_ARENA_MAX), ctypes.c_int(2))


def give_back() -> None:
    """Look for garbage, and return free pages to the system where its allocators can.

    Python, Arrow and the C library keep what they have freed for the next use: after many people
    have left a server that would be most of what it holds.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own
    if trim is not None:
        trim(ctypes.c_size_t(0))
