"""Free memory goes back to the system."""

from __future__ import annotations

import ctypes
import gc

import pyarrow as pa


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
