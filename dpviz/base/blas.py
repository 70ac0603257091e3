"""BLAS on one thread, so that bytes do not depend on how many workers share the machine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _threadpools() -> ThreadpoolController:
    # Looking the loaded libraries up takes milliseconds, so once per process.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread at once; used as a context, lift the limit at its end."""
    limited: AbstractContextManager[object] = _threadpools().limit(limits=1, user_api="blas")
    return limited
