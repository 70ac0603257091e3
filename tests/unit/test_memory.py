"""Freed memory is handed back where the C library can, and nothing is asked elsewhere."""

from __future__ import annotations

import ctypes
import gc
import weakref
from types import SimpleNamespace

import pytest

from dpviz.core.resources import give_back, share_heaps


class Ring:
    """Something that only the look for garbage frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("glibc", [True, False])
def test_garbage_goes_and_free_pages_are_offered(
    glibc: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    library = SimpleNamespace()
    if glibc:
        library.malloc_trim = lambda kept: asked.append(kept.value)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    gc.disable()
    try:
        held = weakref.ref(Ring())
        assert held() is not None  # the control
        give_back()
        assert held() is None
    finally:
        gc.enable()
    assert asked == ([0] if glibc else [])


@pytest.mark.parametrize("glibc", [True, False])
def test_threads_are_told_to_share(glibc: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    library = SimpleNamespace()
    if glibc:
        library.mallopt = lambda what, most: asked.append((what.value, most.value))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    share_heaps()
    assert asked == ([(-8, 2)] if glibc else [])
