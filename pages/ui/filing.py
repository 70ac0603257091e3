"""A release as it may be read, and its privacy card to be filed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.releasing.ledger import CARD, PAGE
from dpviz.releasing.outputs import read_release
from dpviz.report import print as printed
from dpviz.report.privacy_card import picture_words, promise_words, use_words
from dpviz.studies.card import CardOptions, Filed, assumptions_of, card, loadings_table, workbook
from pages.ui import parts
from pages.ui.guard import guard

PARAMS = params_of(CardOptions)


def draw(release: Path, ledger: Path, number: int) -> None:
    """Draw what a kept release says, and what files it.

    Parameters
    ----------
    release, ledger : Path
        Their files.
    number : int
        Of the spend.
    """
    with guard():
        reading = st.container()
        with st.expander("Privacy card, to be filed", icon=":material/badge:"):
            found = _file(release, ledger, number)
        with reading:
            _read(found.card)


def _read(found: Mapping[str, Any]) -> None:
    """Draw what may become of a suspicion, the loadings and variances with bars, what survives."""
    st.markdown(f"**{promise_words(found)}**")
    words = (
        f"Loadings of {found['k']} released components with 95 % bars; hollow where 0 is as likely"
    )
    use = found["use"]
    pictures = {
        name: draw(use)
        for name, draw in (
            ("loadings", printed.loadings),
            ("variances", printed.scree),
            ("biplot", printed.biplot),
        )
    }
    style = "width:100%;max-width:520px;background:#fff;border-radius:4px"
    places = st.columns(3)
    for place, title, picture, said in zip(
        places,
        (
            "What the components are made of",
            "How much each component explains",
            "Both as arrows",
        ),
        pictures.values(),
        (
            words,
            "Explained variance by component, with the noise edge; grey cannot be told from noise",
            "Loadings of components 1 and 2 as arrows; names stand beside, and no row is in it",
        ),
        strict=True,
    ):
        if picture is not None:
            place.markdown(f"**{title}**")
            place.html(printed.image(picture, said, style))
        elif found["k"] > 1:
            place.caption("No biplot: not both components can be interpreted by themselves.")
    st.markdown(use_words(use, found["k"]))
    if found["picture"] is not None:
        said = picture_words(found["picture"])
        st.markdown("**The published picture**")
        st.html(printed.image(printed.published(found["picture"]), said))
        st.caption(said)
    _take(pictures, found)
    with st.expander("Every number of it", icon=":material/table_rows:"):
        table = loadings_table(found)
        st.dataframe(table, hide_index=True, alt="Released components with their bars")
        one, told_in = printed.scale_of(use)
        told = [numeral(value / one, 3) for value in use["variances"][: found["k"]]]
        st.caption(
            f"Explained variance, {told_in}: {', '.join(told)}. A step shorter "
            f"than {numeral(use['noise_edge'] / one, 3)} is noise."
        )


def _take(pictures: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Draw what can be taken along of a release, in the formats of an office."""
    with st.popover("Take it along", icon=":material/download:"):
        for name, picture in pictures.items():
            if picture is None:
                continue
            with st.container(horizontal=True):
                for end in ("png", "svg", "pdf"):
                    make = partial(printed.to_bytes, end, picture)
                    _button(f"{name.capitalize()} ({end.upper()})", f"{name}.{end}", make)
        table = loadings_table(found)
        with st.container(horizontal=True):
            _button("Numbers (CSV)", "numbers.csv", lambda: csv_text(table))
            if find_spec("xlsxwriter") is not None:
                _button("Numbers (XLSX)", "numbers.xlsx", lambda: workbook(found))


def _button(label: str, name: str, make: Callable[[], str | bytes]) -> None:
    """Draw a button whose file is made when it is pressed."""
    parts.download(label, make, f"release-{name}", f"release.take.{name}")


def _file(release: Path, ledger: Path, number: int) -> Filed:
    """Draw what only people know of a release, and its card to be kept; return the card."""
    kept = read_release(release)
    assumed = assumptions_of(kept)
    # what the release says already is not asked again
    asked = {name: param for name, param in PARAMS.items() if not kept.get(name)}
    places = st.columns(len(asked))
    said = {
        name: place.text_input(
            param.label,
            key=f"card.{name}",
            help=param.help,
            placeholder=param.examples[0],
            persist_state="session",
        )
        for place, (name, param) in zip(places, asked.items(), strict=True)
    }
    edited = st.data_editor(
        pd.DataFrame({"what": assumed, "source": "", "confirmed_by": ""}),
        key=f"card.sources~{number}",
        hide_index=True,
        disabled=["what"],
        alt="Each assumption, from where it is known and who confirmed it",
        column_config={
            "what": st.column_config.TextColumn("Assumed public", width="large"),
            "source": st.column_config.TextColumn("From where", width="medium"),
            "confirmed_by": st.column_config.TextColumn("Confirmed by", width="medium"),
        },
    )
    sources = {
        at: (str(row["source"] or ""), str(row["confirmed_by"] or ""))
        for at, row in enumerate(edited.to_dict("records"), 1)
    }
    made = card(release, ledger=ledger, sources=sources, **said)
    with st.container(horizontal=True):
        for label, what, end in (
            ("Page to print and sign", PAGE, "html"),
            ("Card for dpviz release verify", CARD, "json"),
        ):
            # made when it is pressed: the ledger then has a line for it
            name, make = f"card-{number:06d}.{end}", partial(made.filed, what)
            parts.download(label, make, name, f"card.{end}")
    if made.card["unconfirmed"]:
        st.caption(
            f"{len(made.card['unconfirmed'])} assumptions are not confirmed by anybody yet; the "
            "card says so."
        )
    return made
