"""Check your table: after an upload, a row for each column, and what to use it for."""

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
from dpviz.datasets.files import ENCODED
from pages.ui import controls, parts, state, unit
from pages.ui.texts import plain

_USE_WORDS = {
    "number": "number", "category": "category", "colour": "colour only", "drop": "leave out",
}  # fmt: skip
_MOST_OFFERS = 6
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
    st.session_state["check.arrived"] = True
    st.session_state["check.number"] = st.session_state.get("check.number", 0) + 1
    state.put("leave_out", text)


def arrived() -> bool:
    """Return whether a file has arrived since this was asked."""
    return bool(st.session_state.pop("check.arrived", False))


def leave() -> None:
    """Forget what was left out, where the table is no upload."""
    for name in ("leave_out", "categories"):
        if state.get(name):
            state.put(name, "")
    st.session_state.pop("check.file", None)


def _fingerprint(names: list[str]) -> str:
    return "\x1f".join(names)


def uses(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> dict[str, str]:
    """Return what each column is used for now."""
    left = left_out_in(state.get("leave_out")) or ()
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
    """Read and use columns as asked; the last column that is to colour the picture does.

    Parameters
    ----------
    raw : RawTable
    wanted : mapping of str to {"number", "category", "colour", "drop"}
        Of every column.
    """
    able = {column.name: column for column in raw.columns}
    colours = [name for name, use in wanted.items() if use == "colour"]
    now = [name for name, use in uses(raw, check_columns(raw)).items() if use == "colour"]
    colour = next((name for name in colours if name not in now), colours[0] if colours else None)
    if colour is not None and colour not in raw.label_choices:
        st.session_state.complaints["check"] = (
            f"'{colour}' cannot colour the picture: it is empty or differs in every row."
        )
        colour = None
    read_as = read_as_in(state.get("read_as"))
    texts = []
    for name, use in wanted.items():
        column = able[name]
        other = (use == "number" and column.is_text) or (use == "category" and column.is_feature)
        count = column.categories
        if use == "category" and column.is_feature:
            count = len(raw.data[name].unique().drop_null())
        if use == "number" and column.kind is Kind.EMPTY:
            st.session_state.complaints["check"] = f"'{name}' holds nothing."
        elif use == "category" and not (column.can_encode or 2 <= (count or 0) <= MAX_CATEGORIES):
            st.session_state.complaints["check"] = (
                f"'{name}' cannot be a category: it holds not from 2 to {MAX_CATEGORIES} "
                "different values of a few words."
            )
        elif other and read_as.pop(name, None) is None:
            read_as[name] = use
            texts += [name] if use == "category" else []
        elif use == "category":
            texts.append(name)
    state.put("read_as", read_as_listed(read_as))
    state.put("categorical", "onehot" if texts else "drop")
    left = [
        name
        for name, use in wanted.items()
        if use == "drop" and (able[name].is_feature or (texts and able[name].can_encode))
    ]
    # said, so that a command begins with the same table
    kept = ALL_KEPT if suggested_drops(check_columns(raw)) else ""
    state.put("leave_out", names_listed(left) or kept)
    chosen: dict[str, str] = st.session_state.setdefault("check.chosen", {})
    chosen[_fingerprint(list(wanted))] = state.get("leave_out")
    # by its name, as a column that is read in another way may come to another place
    st.session_state.label_index = None if colour is None else raw.label_choices.index(colour)


def unusable(encoding: str = "") -> None:
    """Offer a way on from a file that cannot be used: another encoding, where it may have one."""

    def read() -> None:
        state.put("encoding", encoding)

    def example() -> None:
        state.put("table", _FIRST_TABLE)

    if encoding:
        st.button(
            f"Read it as {ENCODED[encoding]}",
            icon=":material/translate:",
            key="check.encoding",
            type="primary",
            on_click=state.on_change(read),
        )
    st.button(
        "Use an example instead",
        icon=":material/table_view:",
        key="check.example",
        on_click=state.on_change(example),
    )


def step(
    raw: RawTable,
    problem: str | None,
    few: str | None,
    *,
    quiet: bool = False,
    folded: bool = False,
) -> None:
    """Say in a line how the file was read; a click on a guess corrects it.

    Parameters
    ----------
    raw : RawTable
    problem : str or None
        Why the table cannot be used.
    few : str or None
        That its rows are too few for the chosen delta.
    quiet : bool
        Whether nothing that the rows decide is said before it is asked for.
    folded : bool
        Whether the page asks for the person where it likes (`ask_person`).
    """
    store = st.session_state
    store["check.now"] = checks = check_columns(raw, left_out_in(state.get("leave_out")) or ())
    now, file_id = uses(raw, checks), store["check.file"]
    out = [name for name, use in now.items() if use == "drop"]
    colour = next((name for name, use in now.items() if use == "colour"), "none")
    lost = _lost(raw, now)
    shape, columns, gaps = f"{len(checks)} columns", "use of columns", "missing values"
    if not quiet:
        shape = f"{raw.shape[0]:,} rows, {shape}"
        columns = f"left out: {counted(len(out), 'column')}" if out else "every column is used"
        filled = "filled with medians" if state.get("missing") == "median" else "left out"
        gaps = (
            f"{counted(lost, 'row')} with missing values: {filled}" if lost else "nothing missing"
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
            _guess("marks", "decimal mark", _marks)
            st.button(
                "All correct", key="check.correct.all",
                on_click=lambda: store.update({"check.correct": file_id}),
            )  # fmt: skip
        if raw.notes:
            # what became of names, units and persons is the first thing to be wrong
            st.caption(plain(" ".join(raw.notes)))
    if not quiet:
        _open_questions(raw, checks, now, few)


def _guess(name: str, label: str, draw: Callable[[], None]) -> None:
    """Offer a guess to be corrected; what it rests on is sent once it is opened."""
    store, key = st.session_state, f"check.{name}~{st.session_state['check.number']}"
    if store.get(key) and store.get(f"check.{name}.label") != label:
        store[key] = True  # under other words it is another box, and as open
    store[f"check.{name}.label"] = label
    box = st.popover(plain(label), key=key, on_change="rerun")
    if box.open:
        with box:
            draw()


def _open_questions(
    raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str], few: str | None
) -> None:
    """Draw what must be looked at before anything is made of the table."""
    _codes(raw, checks)
    _words(raw, checks, now)
    if few is not None:
        st.warning(few, icon=":material/groups:")


def _colour(raw: RawTable) -> None:
    """Draw the choice of the column that colours the picture."""

    def labelled(at: int | None) -> None:
        st.session_state.label_index = at
        state.put("categories", "")  # they were those of another column

    controls.control(
        st.selectbox,
        "Label column",
        "upload.label",
        st.session_state.label_index,
        labelled,
        options=[None, *range(len(raw.label_choices))],
        format_func=lambda at: "none" if at is None else raw.label_choices[at],
        help="Colours the picture; it is left out of the analysis.",
    )
    if st.session_state.label_index is not None:
        controls.setting("categories")


def _marks() -> None:
    """Draw how cells of text are read."""
    for name in ("decimal", "encoding", "categorical"):
        controls.setting(name)


def coded(raw: RawTable, label: str | None) -> bool:
    """Return whether the classes of the label are numbered, as their words would find people."""
    column = next((column for column in raw.columns if column.name == label), None)
    confirmed = (st.session_state.get("check.file"), label) == st.session_state.get("check.words")
    confirmed = confirmed or bool(state.get("categories"))  # known to everybody
    return column is not None and not confirmed and bool(exposed(raw, column))


def _words(raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str]) -> None:
    """Say that the classes of the label are numbered, and offer to show their words."""
    label = next((check for check in checks if now[check.name] == "colour"), None)
    if label is None or not coded(raw, label.name):
        return

    def confirmed() -> None:
        st.session_state["check.words"] = (st.session_state["check.file"], label.name)

    st.warning(
        plain(f"'{label.name}': {label.exposes} Its classes are shown by number."),
        icon=":material/visibility_off:",
    )
    st.button("Show its words", key="check.words.show", on_click=state.on_change(confirmed))


def ask_person(*, quiet: bool = False) -> None:
    """Ask how many rows one person of an upload has, and name what may be the person.

    Parameters
    ----------
    quiet : bool
        Whether nothing that the rows decide is said.
    """
    checks: tuple[ColumnCheck, ...] = st.session_state["check.now"]
    likely = next((check for check in checks if check.repeats), None)
    hint = ""
    if likely and not quiet:
        hint = f"'{likely.name}' may name the person: up to {likely.repeats} rows have one value."
    unit.ask("check", [check.name for check in checks], likely.name if likely else "", hint)


def _codes(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> None:
    """Ask of each number such as -999, and word such as Unknown, whether it is a value."""
    codes = {check.code for check in checks if check.code is not None}
    for code in sorted(codes, key=lambda code: (isinstance(code, str), code)):
        shown = code if isinstance(code, str) else parseable(code, 6)
        with st.container(border=True, key=f"check.code.{zlib.crc32(shown.encode())}"):
            word = plain(code) if isinstance(code, str) else shown
            st.markdown(f"**Is {word} a value?** {plain(_where(raw, code))}")
            if not isinstance(code, str):
                effects = sentinel_effects(raw, code)
                st.table(
                    pd.DataFrame(
                        {
                            "mean of": [plain(name) for name, *_ in effects],
                            f"with {shown}": [numeral(a, 4) for *_, a, _ in effects],
                            "without": [numeral(b, 4) for *_, b in effects],
                        }
                    ).set_index("mean of"),
                    alt=f"Means of features with {shown} and without it",
                )

            def treat(code: float | str = code) -> None:
                said = code if isinstance(code, str) else format_number(code)
                state.put("codes", names_listed([*names_in(state.get("codes")), said]))

            st.button(
                plain(f"Treat {shown} as missing"),
                key=f"check.treat.{shown}",
                type="secondary" if isinstance(code, str) else "primary",
                on_click=state.on_change(treat),
            )
    if state.get("codes"):

        def undo() -> None:
            state.put("codes", "")

        st.caption(plain(f"Counted as missing: {state.get('codes')}."))
        st.button("They are values", key="check.codes.undo", on_click=state.on_change(undo))


def _where(raw: RawTable, code: float | str) -> str:
    """Return where a code for missing stands, in words."""
    if isinstance(code, str):
        cells = word_cells(raw, code)
        return f"It stands in {counted(sum(cells.values()), 'cell')} of {listed([*cells])}."
    cells = sum(cells for _, cells, _, _ in sentinel_effects(raw, code))
    return f"It stands in {cells:,} cells, far from every other number there."


def _nearly_numbers(raw: RawTable, now: dict[str, str]) -> None:
    """Offer to read texts that are mostly numbers as numbers, whatever else they hold."""
    for column in [column for column in raw.columns if column.numbers][:_MOST_OFFERS]:
        lost = raw.shape[0] - column.missing - column.numbers
        st.button(
            plain(f"Read '{column.name}' as numbers: {counted(lost, 'cell')} would be missing"),
            key=f"check.number.{zlib.crc32(column.name.encode())}",
            icon=":material/123:",
            on_click=state.on_change(partial(_change, raw, now, column.name, "number")),
        )


def _change(raw: RawTable, now: Mapping[str, str], name: str, use: str) -> None:
    """Read and use one column as asked, and all others as they are."""
    st.session_state.complaints.pop("check", None)
    choose(raw, {**{c.name: _word_of(c, now[c.name]) for c in raw.columns}, name: use})


def _word_of(column: RawColumn, use: str) -> str:
    """Return what a column is read and used as now."""
    kind = "number" if column.is_feature else "category"
    return kind if use == "feature" else use


def _scales(raw: RawTable, checks: tuple[ColumnCheck, ...]) -> None:
    """Offer the order that everybody knows, and ask for any other, once for all alike columns."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for check, column in zip(checks, raw.columns, strict=True):
        words = () if check.exposes else raw.words(column)
        if words:
            groups.setdefault(tuple(sorted(words)), []).append(column.name)
    scales = levels_in(state.get("levels"))

    def count(order: Sequence[str]) -> None:
        state.put("levels", levels_listed([*scales, list(order)]))

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
        said = "; ".join(" < ".join(scale) for scale in scales)
        st.caption(plain(f"Counted from 1 in this order: {said}."))
        st.button(
            "They are words",
            key="check.levels.undo",
            on_click=state.on_change(lambda: state.put("levels", "")),
        )


def _ordered_by_hand(
    groups: Mapping[str, tuple[str, ...]], count: Callable[[Sequence[str]], None]
) -> None:
    """Let answers be put in an order of one's own; most columns of a few words have none."""
    if not groups:
        return
    asked = st.selectbox(
        "Does a column hold answers in an order of their own?",
        list(groups),
        index=None,
        format_func=plain,
        key="check.ordered",
        placeholder="no",
    )
    if asked is None:
        return
    words = groups[asked]
    key = f"check.scale.{zlib.crc32(repr(words).encode())}"

    def ordered() -> None:
        if len(st.session_state[key]) == len(words):
            count(st.session_state[key])

    st.multiselect(
        "Pick them from the least to the most",
        words,
        key=key,
        placeholder=f"{len(words)} words, then they count from 1 to {len(words)}",
        on_change=state.on_change(ordered),
    )


def _editor(raw: RawTable, checks: tuple[ColumnCheck, ...], now: dict[str, str]) -> None:
    """List what was guessed, a column a line, to be changed, with the first cells."""
    frame = pd.DataFrame(
        {
            "column": [column.name for column in raw.columns],
            "use": [_USE_WORDS[_word_of(column, now[column.name])] for column in raw.columns],
            "read": [column.read_as for column in raw.columns],
            # a table may be checked beside others: what would find a person stays in the file
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
    # A widget of its own for each state: late reports of an old one cannot undo a change.
    key = f"check.uses~{zlib.crc32(repr(frame.to_dict('list')).encode())}"
    words = {shown: use for use, shown in _USE_WORDS.items()}

    def edited() -> None:
        for row, cells in st.session_state[key]["edited_rows"].items():
            if cells.get("use") in words:
                _change(raw, now, checks[int(row)].name, words[cells["use"]])

    st.data_editor(
        frame,
        key=key,
        hide_index=True,
        alt="Each column of the file: what it is used as, to choose, and how its cells were read",
        disabled=["column", "read", "first", "missing", "words"],
        column_config={
            "column": st.column_config.TextColumn("Column"),
            "use": st.column_config.SelectboxColumn(
                "Use as", options=list(_USE_WORDS.values()), required=True
            ),
            "read": st.column_config.TextColumn("Read as", width="medium"),
            "first": st.column_config.TextColumn("First cells"),
            "missing": st.column_config.NumberColumn("Missing", format="localized"),
            "words": st.column_config.TextColumn("Words that became missing"),
        },
        on_change=state.on_change(edited),
    )
    # In words of their own, below: a cell of the table would cut them off.
    said = [f"- **{plain(c.name)}**: {' '.join(c.warnings)}" for c in checks if c.warnings]
    if said:
        st.markdown("\n".join(said))
    complaint = state.complaint("check")
    if complaint is not None:
        st.error(plain(complaint), icon=":material/error:")


def _lost(raw: RawTable, now: dict[str, str]) -> int:
    """Return how many rows have a gap in a feature."""
    return rows_lost(raw, [name for name, use in now.items() if use == "feature"])


def _gaps(raw: RawTable, lost: int) -> None:
    """Say how many rows have missing values, and what becomes of them."""
    said = f"{raw.shape[0]:,} rows, none with a missing value in a feature."
    if lost:
        filled = state.get("missing") == "median"
        became = "filled with their columns' medians" if filled else "left out"
        said = (
            f"{lost:,} of {raw.shape[0]:,} rows have missing values in features and are {became}. "
            "In a release no row is dropped: an empty cell becomes the typical value that you "
            "state there, in its own row."
        )
    st.caption(said)
    controls.setting("missing")


def _ways(checks: tuple[ColumnCheck, ...]) -> None:
    """Offer standardising where scales differ, and hand the settings out."""
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
        "What was chosen here and in all other controls; it names columns of your file.",
    )
