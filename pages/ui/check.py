"""Check your table: after an upload, a row for each column, and what to use it for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dpviz.core.settings import names_in, names_listed
from dpviz.datasets import RawTable, check_columns, rows_lost, suggested_drops
from dpviz.datasets.check import ColumnCheck
from pages.ui import parts, state
from pages.ui.texts import plain

_USE_WORDS = {"feature": "feature", "colour": "colour only", "drop": "leave out"}
_FIRST_TABLE = "digits"


def arrive(raw: RawTable, file_id: str) -> None:
    """Leave out what looks like an identifier, when a file is seen first; restore what was chosen.

    What was left out of another file with the same columns stays left out: the same table, saved
    again.
    """
    if st.session_state.get("check.file") == file_id:
        return
    names = [column.name for column in raw.columns]
    chosen: dict[str, str] = st.session_state.setdefault("check.chosen", {})
    known = chosen.get(_fingerprint(names))
    drops = suggested_drops(check_columns(raw))
    able = len([c for c in raw.columns if c.is_feature and c.name not in drops]) >= 2
    text = known if known is not None else names_listed(drops if able else ())
    st.session_state["check.file"] = file_id
    state.put("leave_out", text)


def leave() -> None:
    """Forget what was left out, where the table is no upload."""
    if state.get("leave_out"):
        state.put("leave_out", "")
    st.session_state.pop("check.file", None)


def _fingerprint(names: list[str]) -> str:
    return "\x1f".join(names)


def uses(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> dict[str, str]:
    """Return what each column is used for now."""
    left = names_in(state.get("leave_out"))
    index = st.session_state.label_index
    label = raw.label_choices[index] if index is not None and index < len(raw.label_choices) else ""
    onehot = state.get("categorical") == "onehot"
    found = {}
    for check, column in zip(checks, raw.columns, strict=True):
        feature = column.is_feature or (onehot and column.can_encode)
        if check.name == label:
            found[check.name] = "colour"
        else:
            found[check.name] = "feature" if feature and check.name not in left else "drop"
    return found


def choose(raw: RawTable, wanted: Mapping[str, str]) -> None:
    """Use columns as asked; the last column that is to colour the picture does."""
    colours = [name for name, use in wanted.items() if use == "colour"]
    now = [name for name, use in uses(raw, check_columns(raw)).items() if use == "colour"]
    colour = next((name for name in colours if name not in now), colours[0] if colours else None)
    able = {column.name: column for column in raw.columns}
    if colour is not None and colour not in raw.label_choices:
        st.session_state.complaints["check"] = (
            f"'{colour}' cannot colour the picture: it is empty or differs in every row."
        )
        colour = None
    st.session_state.label_index = None if colour is None else raw.label_choices.index(colour)
    texts = [name for name, use in wanted.items() if use == "feature" and able[name].can_encode]
    refused = [
        name
        for name, use in wanted.items()
        if use == "feature" and not (able[name].is_feature or able[name].can_encode)
    ]
    if refused:
        st.session_state.complaints["check"] = (
            f"'{refused[0]}' cannot be a feature: it holds no numbers, and not from 2 to 50 "
            "different texts."
        )
    state.put("categorical", "onehot" if texts else "drop")
    left = [
        name
        for name, use in wanted.items()
        if use == "drop" and (able[name].is_feature or (texts and able[name].can_encode))
    ]
    state.put("leave_out", names_listed(left))
    chosen: dict[str, str] = st.session_state.setdefault("check.chosen", {})
    chosen[_fingerprint(list(wanted))] = state.get("leave_out")


def unusable() -> None:
    """Offer a way on from a file that cannot be used."""

    def example() -> None:
        state.put("table", _FIRST_TABLE)

    st.button(
        "Use an example instead",
        icon=":material/table_view:",
        key="check.example",
        on_click=state.on_change(example),
    )


def step(raw: RawTable, problem: str | None, few: str | None, *, quiet: bool = False) -> None:
    """Show every column with its kind, gaps, use and what to look at, to be changed.

    Parameters
    ----------
    raw : RawTable
    problem : str or None
        Why the table cannot be used.
    few : str or None
        That its rows are too few for the chosen delta.
    quiet : bool
        Whether nothing that the rows decide is said before the check is opened.
    """
    left = names_in(state.get("leave_out"))
    checks = check_columns(raw, left)
    now = uses(raw, checks)
    looks = sum(bool(check.warnings) for check in checks) + (few is not None)
    words = f"{looks} to look at" if looks else "nothing stands out"
    box = st.expander(
        f"Check your table: {len(checks)} columns" + ("" if quiet else f", {words}"),
        expanded=problem is not None,
        icon=":material/fact_check:",
        key="check",
        on_change="rerun",
    )
    if not box.open:
        return
    with box:
        _editor(raw, checks, now)
        if few is not None:
            st.warning(few, icon=":material/groups:")
        _gaps(raw, now)
        _ways(checks)


def _editor(raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str]) -> None:
    frame = pd.DataFrame(
        {
            "column": [check.name for check in checks],
            "kind": [check.kind.value for check in checks],
            "missing": [check.missing for check in checks],
            "use": [_USE_WORDS[now[check.name]] for check in checks],
            "look": [" ".join(check.warnings) for check in checks],
        }
    )
    # A widget of its own for each state: late reports of an old one cannot undo a change.
    key = f"check.uses~{zlib.crc32(repr(frame.to_dict('list')).encode())}"
    words = {shown: use for use, shown in _USE_WORDS.items()}

    def edited() -> None:
        changes = st.session_state[key]["edited_rows"]
        wanted = dict(now)
        for row, cells in changes.items():
            if cells.get("use") in words:
                wanted[checks[int(row)].name] = words[cells["use"]]
        st.session_state.complaints.pop("check", None)
        choose(raw, wanted)

    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        alt="Each column of the file: its kind, its gaps, and what it is used for, to choose",
        disabled=["column", "kind", "missing", "look"],
        column_config={
            "column": st.column_config.TextColumn("Column"),
            "kind": st.column_config.TextColumn("Kind"),
            "missing": st.column_config.NumberColumn("Missing", format="localized"),
            "use": st.column_config.SelectboxColumn(
                "Use", options=list(_USE_WORDS.values()), required=True
            ),
            "look": st.column_config.TextColumn("Look at", width="large"),
        },
        on_change=state.on_change(edited),
    )
    complaint = state.complaint("check")
    if complaint is not None:
        st.error(plain(complaint), icon=":material/error:")


def _gaps(raw: RawTable, now: dict[str, str]) -> None:
    """Say how many rows gaps cost, and offer the median."""
    n = raw.shape[0]
    lost = rows_lost(raw, [name for name, use in now.items() if use == "feature"])
    if not lost:
        st.caption(f"{n:,} rows, none with a gap in a feature.")
        return
    if state.get("missing") == "median":
        st.caption(f"{lost:,} of {n:,} rows have gaps, filled with their columns' medians.")
    else:
        st.caption(f"{lost:,} of {n:,} rows have a gap in a feature and are left out.")

    def other() -> None:
        state.put("missing", "drop" if state.get("missing") == "median" else "median")

    st.button(
        "Fill with medians" if state.get("missing") == "drop" else "Leave those rows out",
        key="check.median",
        on_click=state.on_change(other),
    )


def _ways(checks: tuple[ColumnCheck, ...]) -> None:
    """Offer standardising where scales differ, and hand the settings out."""
    if state.get("scale") == "none" and any(check.wide for check in checks):

        def standardise() -> None:
            state.put("scale", "standardize")

        st.button(
            "Standardise the features",
            key="check.standardise",
            on_click=state.on_change(standardise),
        )
    parts.settings_file(
        state.settings(),
        "check.settings",
        "What was chosen here and in all other controls; it names columns of your file.",
    )
