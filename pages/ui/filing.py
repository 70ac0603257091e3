"""A release that visitors can read, and its privacy card as a file."""

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
    """Draw what a stored release says, and offer its privacy card.

    Parameters
    ----------
    release, ledger : Path
        Paths of the release and of the ledger.
    number : int
        Number of the release's spend in the ledger.
    """
    with guard():
        reading = st.container()
        with st.expander("Privacy card for your records", icon=":material/badge:"):
            answer = _file(release, ledger, number)
        with reading:
            _read(answer.card)


def _read(fields: Mapping[str, Any]) -> None:
    """Draw the risk, the loadings and variances with bars, and the structure kept."""
    st.markdown(f"**{promise_words(fields)}**")
    words = (
        f"Loadings of {fields['k']} released components with 95 % bars; a hollow loading may be 0"
    )
    use = fields["use"]
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
    for place, title, picture, text in zip(
        places,
        (
            "What the components are made of",
            "How much each component explains",
            "Both components as arrows",
        ),
        pictures.values(),
        (
            words,
            "Explained variance by component, with the noise edge; grey components cannot "
            "be distinguished from noise",
            "Loadings of components 1 and 2 as arrows with their names; no row is shown",
        ),
        strict=True,
    ):
        if picture is not None:
            place.markdown(f"**{title}**")
            place.html(printed.image(picture, text, style))
        elif fields["k"] > 1:
            place.caption(
                "No biplot: at least one of the two components cannot be interpreted by itself."
            )
    st.markdown(use_words(use, fields["k"]))
    if fields["picture"] is not None:
        text = picture_words(fields["picture"])
        st.markdown("**The published chart**")
        st.html(printed.image(printed.published(fields["picture"]), text))
        st.caption(text)
    _take(pictures, fields)
    with st.expander("All numbers", icon=":material/table_rows:"):
        table = loadings_table(fields)
        st.dataframe(table, hide_index=True, alt="Released components with their bars")
        one, told_in = printed.scale_of(use)
        variances = [numeral(value / one, 3) for value in use["variances"][: fields["k"]]]
        st.caption(
            f"Explained variance, {told_in}: {', '.join(variances)}. A difference below "
            f"{numeral(use['noise_edge'] / one, 3)} is noise."
        )


def _take(pictures: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Draw a release's downloads, in office formats."""
    with st.popover("Download the results", icon=":material/download:"):
        for name, picture in pictures.items():
            if picture is None:
                continue
            with st.container(horizontal=True):
                for end in ("png", "svg", "pdf"):
                    make = partial(printed.to_bytes, end, picture)
                    _button(f"{name.capitalize()} ({end.upper()})", f"{name}.{end}", make)
        table = loadings_table(fields)
        with st.container(horizontal=True):
            _button("Numbers (CSV)", "numbers.csv", lambda: csv_text(table))
            if find_spec("xlsxwriter") is not None:
                _button("Numbers (XLSX)", "numbers.xlsx", lambda: workbook(fields))


def _button(label: str, name: str, make: Callable[[], str | bytes]) -> None:
    """Draw a button whose file is created when a visitor presses it."""
    parts.download(label, make, f"release-{name}", f"release.take.{name}")


def _file(release: Path, ledger: Path, number: int) -> Filed:
    """Draw fields for facts that only people know, and the card's files; return it."""
    content = read_release(release)
    assumptions = assumptions_of(content)
    # The release already states these entries, so do not ask for them again.
    open_params = {name: param for name, param in PARAMS.items() if not content.get(name)}
    places = st.columns(len(open_params))
    texts = {
        name: place.text_input(
            param.label,
            key=f"card.{name}",
            help=param.help,
            placeholder=param.examples[0],
            persist_state="session",
        )
        for place, (name, param) in zip(places, open_params.items(), strict=True)
    }
    entries = st.data_editor(
        pd.DataFrame({"what": assumptions, "source": "", "confirmed_by": ""}),
        key=f"card.sources~{number}",
        hide_index=True,
        disabled=["what"],
        alt="Each assumption, its source and who confirmed it",
        column_config={
            "what": st.column_config.TextColumn("Assumed public", width="large"),
            "source": st.column_config.TextColumn("Source", width="medium"),
            "confirmed_by": st.column_config.TextColumn("Confirmed by", width="medium"),
        },
    )
    sources = {
        at: (str(row["source"] or ""), str(row["confirmed_by"] or ""))
        for at, row in enumerate(entries.to_dict("records"), 1)
    }
    answer = card(release, ledger=ledger, sources=sources, **texts)
    with st.container(horizontal=True):
        for label, what, end in (
            ("Page to print and sign", PAGE, "html"),
            ("Card file for dpviz release verify", CARD, "json"),
        ):
            # Create the file only when the button is pressed, because the ledger then records it.
            name, make = f"card-{number:06d}.{end}", partial(answer.filed, what)
            parts.download(label, make, name, f"card.{end}")
    if answer.card["unconfirmed"]:
        st.caption(
            f"{len(answer.card['unconfirmed'])} assumptions are not confirmed yet, and the card "
            "states this."
        )
    return answer
