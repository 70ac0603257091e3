"""The stored files: their names and contents, and the versions that made them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import dpviz
from dpviz.studies import versions
from tests.answers.links import links_text
from tests.answers.pages import VIEWS
from tests.answers.questions import QUESTIONS
from tests.answers.writing import answer_text

FOLDER = Path(__file__).parent / "kept"
VERSIONS = FOLDER / "versions.txt"
NAMES = (*QUESTIONS, *VIEWS, "links")


def text_of(name: str, heard: Callable[[str, str], None] = lambda study, text: None) -> str:
    """Return the text of an answer or of a page.

    Parameters
    ----------
    name : str
    heard : callable
        Function called with the study and its JSON if the name is a question's.
    """
    if name == "links":
        return links_text()
    if name in VIEWS:
        view, page = VIEWS[name]
        return view(page)
    study, options = QUESTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # An answer contains its warnings, so do not print them.
        answer = getattr(dpviz, study)(**options)
        text = answer_text(answer)
    heard(study, answer.to_json())
    return text


def made_by() -> str:
    """Return the versions on which the last digits of a number depend."""
    libraries = versions()
    return "".join(f"{name} {libraries[name]}\n" for name in ("numpy", "scipy", "blas"))
