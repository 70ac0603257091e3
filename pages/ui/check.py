"""Check your table: after an upload, a row for each column and its use."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from dpviz.core.number_text import numeral, parseable
from dpviz.core.params import format_number
from dpviz.core.settings import (
    ALL_KEPT,
    left_out_in,
    levels_in,
    levels_listed,
    names_in,
    names_listed,
    read_as_in,
    read_as_listed,
)
from dpviz.datasets import Kind, RawColumn, RawTable, check_columns, rows_lost, suggested_drops
from dpviz.datasets.check import ColumnCheck, exposed, in_order, sentinel_effects, word_cells
from dpviz.datasets.columns import MAX_CATEGORIES, counted, listed
from dpviz.datasets.dialect import DELIMITERS
from dpviz.datasets.files import ENCODED
from dpviz.report.tables.projection import MOST_MARKED
from pages.ui import controls, parts, state, unit
from pages.ui.texts import plain

_USE_WORDS = {
    "number": "number", "category": "category", "colour": "colour only", "drop": "leave out",
}  # fmt: skip
_MOST_OFFERS = 6
_FIRST_TABLE = "digits"


def arrive(raw: RawTable, file_id: str) -> None:
    """Leave out likely identifiers of a new file, or restore the earlier choice.

    Columns left out of another file with the same columns stay left out, because it is the same
    table, saved again.
    """
    if st.session_state.get("check.file") == file_id:
        return
    checks, store = check_columns(raw), st.session_state
    choice = store.setdefault("check.chosen", {}).get(_fingerprint([c.name for c in raw.columns]))
    drops = suggested_drops(checks)
    if choice is None and store.label_index is None and state.get("categorical") == "drop":
        store.label_index = _likely_label(raw, checks)
    able = len([c for c in raw.columns if c.is_feature and c.name not in drops]) >= 2
    text = choice if choice is not None else names_listed(drops if able else ())
    st.session_state["check.file"] = file_id
    st.session_state["check.arrived"] = True
    st.session_state["check.number"] = st.session_state.get("check.number", 0) + 1
    state.put("leave_out", text)


def _likely_label(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> int | None:
    """Return the number of the last column of a few words that identify nobody, if there is one."""
    few = {
        column.name
        for column in raw.columns
        if column.kind is Kind.CATEGORICAL and 2 <= column.categories <= MOST_MARKED
        if not in_order(raw.words(column))
    }
    safe = [check.name for check in checks if check.name in few and not check.exposes]
    return raw.label_choices.index(safe[-1]) if safe else None


def arrived() -> bool:
    """Return whether a file has arrived since the last call."""
    return bool(st.session_state.pop("check.arrived", False))


def leave() -> None:
    """Forget which columns were left out, if the table is not an upload."""
    for name in ("leave_out", "categories"):
        if state.get(name):
            state.put(name, "")
    st.session_state.pop("check.file", None)


def _fingerprint(names: list[str]) -> str:
    return "\x1f".join(names)


def uses(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> dict[str, str]:
    """Return the current use of each column."""
    out = left_out_in(state.get("leave_out")) or ()
    index = st.session_state.label_index
    label = raw.label_choices[index] if index is not None and index < len(raw.label_choices) else ""
    onehot = state.get("categorical") == "onehot"
    roles = {}
    for check, column in zip(checks, raw.columns, strict=True):
        feature = column.is_feature or (onehot and column.can_encode)
        if check.name == label:
            roles[check.name] = "colour"
        else:
            roles[check.name] = "feature" if feature and check.name not in out else "drop"
    return roles


def choose(raw: RawTable, roles: Mapping[str, str]) -> None:
    """Read and use columns as requested; the last column chosen as colour colours the chart.

    Parameters
    ----------
    raw : RawTable
    roles : mapping of str to {"number", "category", "colour", "drop"}
        Requested use of every column.
    """
    able = {column.name: column for column in raw.columns}
    colours = [name for name, use in roles.items() if use == "colour"]
    now = [name for name, use in uses(raw, check_columns(raw)).items() if use == "colour"]
    colour = next((name for name in colours if name not in now), colours[0] if colours else None)
    if colour is not None and colour not in raw.label_choices:
        st.session_state.complaints["check"] = (
            f"Column '{colour}' cannot colour the chart: it is empty or differs in every row."
        )
        colour = None
    read_as = read_as_in(state.get("read_as"))
    texts = []
    for name, use in roles.items():
        column = able[name]
        other = (use == "number" and column.is_text) or (use == "category" and column.is_feature)
        count = column.categories
        if use == "category" and column.is_feature:
            count = len(raw.data[name].unique().drop_null())
        if use == "number" and column.kind is Kind.EMPTY:
            st.session_state.complaints["check"] = f"'{name}' is empty."
        elif use == "category" and not (column.can_encode or 2 <= (count or 0) <= MAX_CATEGORIES):
            st.session_state.complaints["check"] = (
                f"Column '{name}' cannot be a category: a category has 2 to {MAX_CATEGORIES} "
                "different values of a few words."
            )
        elif other and read_as.pop(name, None) is None:
            read_as[name] = use
            texts += [name] if use == "category" else []
        elif use == "category":
            texts.append(name)
    state.put("read_as", read_as_listed(read_as))
    state.put("categorical", "onehot" if texts else "drop")
    out = [
        name
        for name, use in roles.items()
        if use == "drop" and (able[name].is_feature or (texts and able[name].can_encode))
    ]
    # Store the choice of columns, so that a command begins with the same table.
    otherwise = ALL_KEPT if suggested_drops(check_columns(raw)) else ""
    state.put("leave_out", names_listed(out) or otherwise)
    choices: dict[str, str] = st.session_state.setdefault("check.chosen", {})
    choices[_fingerprint(list(roles))] = state.get("leave_out")
    # Find the label column by name, because its position may change with the way of reading.
    st.session_state.label_index = None if colour is None else raw.label_choices.index(colour)


def unusable(encoding: str = "") -> None:
    """Offer other ways to read an unusable file, such as another encoding."""
    if encoding:
        st.button(
            f"Read the file as {ENCODED[encoding]}",
            icon=":material/translate:",
            key="check.encoding",
            type="primary",
            on_click=state.on_change(partial(state.put, "encoding", encoding)),
        )
    st.button(
        "Use an example table",
        icon=":material/table_view:",
        key="check.example",
        on_click=state.on_change(partial(state.put, "table", _FIRST_TABLE)),
    )


def step(
    raw: RawTable,
    problem: str | None,
    few: str | None,
    *,
    quiet: bool = False,
    folded: bool = False,
) -> None:
    """Report in a line how the file was read; a click on a guess corrects the guess.

    Parameters
    ----------
    raw : RawTable
    problem : str or None
        Reason why the table cannot be used.
    few : str or None
        Note that the table's rows are too few for the chosen delta.
    quiet : bool
        Whether to hide facts that depend on the rows until the visitor asks for them.
    folded : bool
        Whether the page itself asks the question about persons (`ask_person`).
    """
    store = st.session_state
    store["check.now"] = checks = check_columns(raw, left_out_in(state.get("leave_out")) or ())
    now, file_id = uses(raw, checks), store["check.file"]
    out = [name for name, use in now.items() if use == "drop"]
    colour = next((name for name, use in now.items() if use == "colour"), "none")
    lost = _lost(raw, now)
    features = counted([*now.values()].count("feature"), "feature")
    shape, columns, gaps = f"{raw.shape[0]:,} rows, {features}", "use of columns", "missing values"
    split = "decimal mark"
    if raw.layout is not None:
        split = f"first line: {'a row' if raw.layout.names is None else 'column names'}"
        mark = {mark: word for word, mark in DELIMITERS.items()}[raw.layout.delimiter]
        split += "" if raw.sheet else f", split at {mark}s"
    if not quiet:
        columns = f"left out: {counted(len(out), 'column')}" if out else "every column is used"
        filling = "filled with medians" if state.get("missing") == "median" else "left out"
        gaps = (
            f"{counted(lost, 'row')} with missing values: {filling}" if lost else "nothing missing"
        )
    if store.get("check.correct") == file_id and problem is None:
        st.button(
            f"Read as {shape}", key="check.again", type="tertiary", icon=":material/fact_check:",
            help="How the file was read", on_click=lambda: store.pop("check.correct"),
        )  # fmt: skip
        return

    def use() -> None:
        _scales(raw, checks)
        _nearly_numbers(raw, now)
        _editor(raw, checks, now)
        _ways(checks)

    def missing() -> None:
        if quiet:
            _open_questions(raw, checks, now, few)
        _gaps(raw, lost)

    with st.container(key="check-read"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**Read as {shape}:**", width="content")
            if not folded:
                ask_person(quiet=quiet)
            _guess("columns", columns, use)
            _guess("missing", gaps, missing)
            _guess("colour", f"colour: {colour}", partial(_colour, raw))
            _guess("marks", split, partial(_marks, raw))
            st.button(
                "All correct", key="check.correct.all",
                on_click=lambda: store.update({"check.correct": file_id}),
            )  # fmt: skip
        if raw.notes:
            # Show the notes, because names, units and persons are most likely to be wrong.
            st.caption(plain(" ".join(raw.notes)))
    if not quiet:
        _open_questions(raw, checks, now, few)


def _guess(name: str, label: str, draw: Callable[[], None]) -> None:
    """Offer a guess for correction; its details are sent only when a visitor opens it."""
    store, key = st.session_state, f"check.{name}~{st.session_state['check.number']}"
    if store.get(key) and store.get(f"check.{name}.label") != label:
        store[key] = True  # A new label makes a new box, so open the new box again.
    store[f"check.{name}.label"] = label
    box = st.popover(plain(label), key=key, on_change="rerun")
    if box.open:
        with box:
            draw()


def _open_questions(
    raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str], few: str | None
) -> None:
    """Draw the questions that must be answered before the table is used."""
    _codes(raw, checks)
    _words(raw, checks, now)
    if few is not None:
        st.warning(few, icon=":material/groups:")


def _colour(raw: RawTable) -> None:
    """Draw the choice of a column that colours the chart."""

    def labelled(at: int | None) -> None:
        st.session_state.label_index = at
        state.put("categories", "")  # These values belong to another column.

    controls.control(
        st.selectbox,
        "Label column",
        "upload.label",
        st.session_state.label_index,
        labelled,
        options=[None, *range(len(raw.label_choices))],
        format_func=lambda at: "none" if at is None else raw.label_choices[at],
        help="This column colours the chart and is left out of the analysis.",
    )
    if st.session_state.label_index is not None:
        controls.setting("categories")


def _marks(raw: RawTable) -> None:
    """Draw the choice of how cells of text are read."""
    of_text = () if raw.layout is None else ("header",) if raw.sheet else ("header", "delimiter")
    for name in (*of_text, "decimal", "encoding", "categorical"):
        controls.setting(name)


def coded(raw: RawTable, label: str | None) -> bool:
    """Return whether label classes get numbers, because their words would identify people."""
    column = next((column for column in raw.columns if column.name == label), None)
    harmless = (st.session_state.get("check.file"), label) == st.session_state.get("check.words")
    harmless = harmless or bool(state.get("categories"))  # Declared categories are public.
    return column is not None and not harmless and bool(exposed(raw, column))


def _words(raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str]) -> None:
    """State that the classes of the label are numbered, and offer to show their words."""
    label = next((check for check in checks if now[check.name] == "colour"), None)
    if label is None or not coded(raw, label.name):
        return

    def confirmed() -> None:
        st.session_state["check.words"] = (st.session_state["check.file"], label.name)

    st.warning(
        plain(f"'{label.name}': {label.exposes} The label's classes are shown by number."),
        icon=":material/visibility_off:",
    )
    st.button("Show the label's words", key="check.words.show", on_click=state.on_change(confirmed))


def ask_person(place: str = "check", step: str = "", *, quiet: bool = False) -> None:
    """Ask how many rows one person in an upload has, and suggest the person column.

    Parameters
    ----------
    place, step : str
        As in `unit.ask`.
    quiet : bool
        Whether to hide facts that depend on the rows.
    """
    checks: tuple[ColumnCheck, ...] = st.session_state["check.now"]
    likely = next((check for check in checks if check.repeats), None)
    hint = ""
    if likely and not quiet:
        hint = (
            f"'{likely.name}' may identify the person: up to {likely.repeats} rows share one value."
        )
    unit.ask(place, [one.name for one in checks], likely.name if likely else "", hint, step)


def _codes(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> None:
    """Ask whether each number such as -999, and each word such as Unknown, is a value."""
    codes = {check.code for check in checks if check.code is not None}
    for code in sorted(codes, key=lambda code: (isinstance(code, str), code)):
        text = code if isinstance(code, str) else parseable(code, 6)
        with st.container(border=True, key=f"check.code.{zlib.crc32(text.encode())}"):
            word = plain(code) if isinstance(code, str) else text
            st.markdown(f"**Is {word} a value?** {plain(_where(raw, code))}")
            if not isinstance(code, str):
                effects = sentinel_effects(raw, code)
                st.table(
                    pd.DataFrame(
                        {
                            "mean of": [plain(name) for name, *_ in effects],
                            f"with {text}": [numeral(a, 4) for *_, a, _ in effects],
                            "without": [numeral(b, 4) for *_, b in effects],
                        }
                    ).set_index("mean of"),
                    alt=f"Means of features with and without the value {text}",
                )

            def treat(code: float | str = code) -> None:
                text = code if isinstance(code, str) else format_number(code)
                state.put("codes", names_listed([*names_in(state.get("codes")), text]))

            st.button(
                plain(f"Treat {text} as missing"),
                key=f"check.treat.{text}",
                type="secondary" if isinstance(code, str) else "primary",
                on_click=state.on_change(treat),
            )
    if state.get("codes"):

        def undo() -> None:
            state.put("codes", "")

        st.caption(plain(f"These values count as missing: {state.get('codes')}."))
        st.button("Count codes as values", key="check.codes.undo", on_click=state.on_change(undo))


def _where(raw: RawTable, code: float | str) -> str:
    """Return the columns in which a code for missing values occurs, in words."""
    if isinstance(code, str):
        cells = word_cells(raw, code)
        return f"The word occurs in {counted(sum(cells.values()), 'cell')} of {listed([*cells])}."
    cells = sum(cells for _, cells, _, _ in sentinel_effects(raw, code))
    return f"The number occurs in {cells:,} cells, far from all others of its columns."


def _nearly_numbers(raw: RawTable, now: dict[str, str]) -> None:
    """Offer to read texts that are mostly numbers as numbers, whatever other texts they hold."""
    for column in [column for column in raw.columns if column.numbers][:_MOST_OFFERS]:
        lost = raw.shape[0] - column.missing - column.numbers
        st.button(
            plain(f"Read '{column.name}' as numbers: {counted(lost, 'cell')} would be missing"),
            key=f"check.number.{zlib.crc32(column.name.encode())}",
            icon=":material/123:",
            on_click=state.on_change(partial(_change, raw, now, column.name, "number")),
        )


def _change(raw: RawTable, now: Mapping[str, str], name: str, use: str) -> None:
    """Change the reading and use of one column; all other columns stay as they are."""
    st.session_state.complaints.pop("check", None)
    choose(raw, {**{c.name: _word_of(c, now[c.name]) for c in raw.columns}, name: use})


def _word_of(column: RawColumn, use: str) -> str:
    """Return the current reading and use of a column."""
    kind = "number" if column.is_feature else "category"
    return kind if use == "feature" else use


def _scales(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> None:
    """Offer well-known orders of answers, and ask for other orders once for all similar columns."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for check, column in zip(checks, raw.columns, strict=True):
        words = () if check.exposes else raw.words(column)
        if words:
            groups.setdefault(tuple(sorted(words)), []).append(column.name)
    scales, now = levels_in(state.get("levels")), uses(raw, checks)

    def count(order: Sequence[str]) -> None:
        state.put("levels", levels_listed([*scales, list(order)]))
        if "colour" in [now[name] for name in groups.get(tuple(sorted(order)), ())]:
            st.session_state.label_index = None  # The column is now a feature, not a label.

    for words, names in groups.items():
        order = in_order(words)
        if order:
            st.button(
                plain(f"Count {' < '.join(order)} from 1 to {len(order)}: {', '.join(names)[:80]}"),
                key=f"check.known.{zlib.crc32(repr(words).encode())}",
                icon=":material/format_list_numbered:",
                on_click=state.on_change(partial(count, order)),
            )
    _ordered_by_hand({", ".join(names)[:80]: words for words, names in groups.items()}, count)
    if scales:
        text = "; ".join(" < ".join(scale) for scale in scales)
        st.caption(plain(f"Answers count from 1 in this order: {text}."))
        st.button(
            "Count answers as words",
            key="check.levels.undo",
            on_click=state.on_change(lambda: state.put("levels", "")),
        )


def _ordered_by_hand(
    groups: Mapping[str, tuple[str, ...]], count: Callable[[Sequence[str]], None]
) -> None:
    """Let visitors order answers themselves, as most columns with few words have no order."""
    if not groups:
        return
    column = st.selectbox(
        "Does a column hold answers that have an order?",
        list(groups),
        index=None,
        format_func=plain,
        key="check.ordered",
        placeholder="no",
    )
    if column is None:
        return
    words = groups[column]
    key = f"check.scale.{zlib.crc32(repr(words).encode())}"

    def ordered() -> None:
        if len(st.session_state[key]) == len(words):
            count(st.session_state[key])

    st.multiselect(
        "Select the answers from lowest to highest",
        words,
        key=key,
        placeholder=f"Select all {len(words)} answers to count from 1 to {len(words)}",
        on_change=state.on_change(ordered),
    )


def _editor(raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str]) -> None:
    """Draw a list to change the guess for each column, with the column's first cells."""
    frame = pd.DataFrame(
        {
            "column": [column.name for column in raw.columns],
            "use": [_USE_WORDS[_word_of(column, now[column.name])] for column in raw.columns],
            "read": [column.read_as for column in raw.columns],
            # Other people may see the screen, so hide cells that could identify a person.
            "first": [
                "not shown"
                if check.exposes or check.identifies or check.repeats
                else ", ".join(column.first)
                for check, column in zip(checks, raw.columns, strict=True)
            ],
            "missing": [column.missing for column in raw.columns],
            "words": [", ".join(column.words) for column in raw.columns],
        }
    )
    # Use a new widget for each state, so that late reports of an old one cannot undo a change.
    key = f"check.uses~{zlib.crc32(repr(frame.to_dict('list')).encode())}"
    words = {label: use for use, label in _USE_WORDS.items()}

    def edited() -> None:
        for row, cells in st.session_state[key]["edited_rows"].items():
            if cells.get("use") in words:
                _change(raw, now, checks[int(row)].name, words[cells["use"]])

    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        alt="Columns of the file, with a use that you can change, and how cells were read",
        disabled=["column", "read", "first", "missing", "words"],
        column_config={
            "column": st.column_config.TextColumn("Column"),
            "use": st.column_config.SelectboxColumn(
                "Use as", options=list(_USE_WORDS.values()), required=True
            ),
            "read": st.column_config.TextColumn("Read as", width="medium"),
            "first": st.column_config.TextColumn("First cells"),
            "missing": st.column_config.NumberColumn("Missing", format="localized"),
            "words": st.column_config.TextColumn("Words counted as missing"),
        },
        on_change=state.on_change(edited),
    )
    # Show warnings below the table, because a table cell would cut them off.
    warnings = [f"- **{plain(c.name)}**: {' '.join(c.warnings)}" for c in checks if c.warnings]
    if warnings:
        st.markdown("\n".join(warnings))
    complaint = state.complaint("check")
    if complaint is not None:
        st.error(plain(complaint), icon=":material/error:")


def _lost(raw: RawTable, now: dict[str, str]) -> int:
    """Return how many rows have a missing value in a feature."""
    return rows_lost(raw, [name for name, use in now.items() if use == "feature"])


def _gaps(raw: RawTable, lost: int) -> None:
    """Report how many rows have missing values, and how dpviz handles them."""
    text = f"None of the {raw.shape[0]:,} rows has a missing value in a feature."
    if lost:
        medians = state.get("missing") == "median"
        became = "filled with their columns' medians" if medians else "left out"
        text = (
            f"{lost:,} of {raw.shape[0]:,} rows have missing values in features and are {became}. "
            "A release drops no row: an empty cell becomes the typical value that you state on the "
            "page Release."
        )
    st.caption(text)
    controls.setting("missing")


def _ways(checks: tuple[ColumnCheck, ...]) -> None:
    """Offer to standardise if scales differ, and to download the settings."""
    if state.get("scale") == "none" and any(check.wide for check in checks):

        def standardise() -> None:
            state.put("scale", "standardize")

        st.button(
            "Standardise the features",
            key="check.standardise",
            type="primary",
            on_click=state.on_change(standardise),
        )
    parts.settings_file(
        state.settings(),
        "check.settings",
        "The file holds your choices in all controls, and names columns of your table.",
    )
