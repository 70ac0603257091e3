"""A release as it may be read, and its privacy card to be filed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.releasing.outputs import read_release
from dpviz.report.figures.drawing import (
    Drawing,
    biplot_picture,
    loadings_picture,
    variances_picture,
)
from dpviz.report.figures.svg import image
from dpviz.report.privacy_card import picture_svg, picture_words, suspicion_words, use_words
from dpviz.studies.card import CardOptions, Filed, card, loadings_table, workbook
from pages.ui.guard import guard

PARAMS = params_of(CardOptions)
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


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
    st.markdown(f"**{suspicion_words(found['claim']['suspicions'][0])}**")
    words = (
        f"Loadings of {found['k']} released components with 95 % bars; hollow where 0 is as likely"
    )
    use = found["use"]
    loadings, variances, biplot = (
        draw(use) for draw in (loadings_picture, variances_picture, biplot_picture)
    )
    assert loadings is not None
    assert variances is not None
    style = "max-width:100%;background:#fff;border-radius:4px"
    left, middle, right = st.columns(3)
    left.markdown("**What the components are made of**")
    left.html(image(loadings.svg(), words, style))
    middle.markdown("**How much each component explains**")
    edge = "with the noise edge; grey cannot be told from noise"
    middle.html(image(variances.svg(), f"{variances.words}, {edge}", style))
    if biplot is not None:
        alt = f"{biplot.words}; names stand beside, and no row is in it"
        right.markdown("**Both as arrows**")
        right.html(image(biplot.svg(), alt, style))
    elif found["k"] > 1:
        right.caption("No biplot: not both components can be interpreted by themselves.")
    st.markdown(use_words(use, found["k"]))
    if found["picture"] is not None:
        said = picture_words(found["picture"])
        st.markdown("**The published picture**")
        st.html(image(picture_svg(found["picture"]), said, "max-width:100%;border-radius:4px"))
        st.caption(said)
    _take({"loadings": loadings, "variances": variances, "biplot": biplot}, found)
    with st.expander("Every number of it", icon=":material/table_rows:"):
        table = loadings_table(found)
        st.dataframe(table, hide_index=True, alt="Released components with their bars")
        shares = [100 * value / use["total_variance"] for value in use["variances"]]
        st.caption(
            f"Explained variance, % of the released total: "
            f"{', '.join(numeral(share, 3) for share in shares[: found['k']])}. A step shorter "
            f"than {numeral(100 * use['noise_edge'] / use['total_variance'], 3)} is noise."
        )


def _take(pictures: Mapping[str, Drawing | None], found: Mapping[str, Any]) -> None:
    """Draw what can be taken along of a release, in the formats of an office."""
    with st.popover("Take it along", icon=":material/download:"):
        for name, picture in pictures.items():
            if picture is None:
                continue
            with st.container(horizontal=True):
                for end, mime, make in (
                    ("png", "image/png", picture.png),
                    ("svg", "image/svg+xml", picture.svg),
                    ("pdf", "application/pdf", picture.pdf),
                ):
                    _button(f"{name.capitalize()} ({end.upper()})", f"{name}.{end}", mime, make)
        table = loadings_table(found)
        with st.container(horizontal=True):
            _button("Numbers (CSV)", "numbers.csv", "text/csv", lambda: csv_text(table))
            if find_spec("xlsxwriter") is not None:
                _button("Numbers (XLSX)", "numbers.xlsx", _XLSX, lambda: workbook(found))


def _button(label: str, name: str, mime: str, make: Callable[[], str | bytes]) -> None:
    """Draw a button whose file is made when it is pressed."""
    st.download_button(
        label, make, file_name=f"release-{name}", mime=mime, on_click="ignore",
        key=f"release.take.{name}",
    )  # fmt: skip


def _file(release: Path, ledger: Path, number: int) -> Filed:
    """Draw what only people know of a release, and its card to be kept; return the card."""
    kept = read_release(release)
    assumed = kept["assumed_public"]
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
        for label, content, end, mime in (
            ("Page to print and sign", made.to_html(), "html", "text/html"),
            ("Card for dpviz verify", made.to_json() + "\n", "json", "application/json"),
        ):
            st.download_button(
                label,
                content,
                file_name=f"card-{number:06d}.{end}",
                mime=mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"card.{end}",
            )
    if made.card["unconfirmed"]:
        st.caption(
            f"{len(made.card['unconfirmed'])} assumptions are not confirmed by anybody yet; the "
            "card says so."
        )
    return made
