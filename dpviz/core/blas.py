"""BLAS: one thread, so that bytes do not depend on the workers, and which kernel it runs."""

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


@cache
def kernel() -> str:
    """Return the BLAS libraries in use with their kernels, such as ``openblas 0.3.30 Haswell``.

    A library picks a kernel by the processor. Another one adds in another order, so numbers of the
    same seed differ from about the twelfth digit on (``python -m benchmarks.kernels``).
    """
    import scipy.linalg  # noqa: F401  # brings a library of its own, which has to be there by now

    found = {
        " ".join(str(library.get(fact)) for fact in ("internal_api", "version", "architecture"))
        for library in ThreadpoolController().info()
        if library["user_api"] == "blas"
    }
    return ", ".join(sorted(found))
