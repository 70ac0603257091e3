"""A ledger: a file that says what has been spent on one table, and how much may be.

The file is text, one JSON object a line. Its heading holds what never changes: the limit, how
spends add up, the neighbouring relation, who counts as one (a row), a schema if one was fixed, and
a secret salt. Then comes a line for each spend, one for each table that it is about, and one that
closes a spend for each file that was written of it: release, card, and page to print. Every line
carries a digest of itself and the line before, so the digest of the last one, the head, stands for
all of it: a line that was changed, lost in the middle or written without the lock is noticed in the
file. The head stands beside the file too (``.head``), in the name of each kept release
(``.releases``) and in the release itself, so that a ledger behind any of them is refused.

A spend is written before the data is touched: a process that is killed leaves at most a spend
without a release, never a release without a spend. One that is killed between a release and the
line that closes it leaves a spend that counts and a file that nothing vouches for. A new version of
the file is written beside it, flushed to the disk and put in place of the old one, whole or not at
all, while a lock keeps every other process out. A spend never makes a ledger.

A table is known by a keyed digest of its bytes, under the heading's salt. It tells nothing to
whoever has no salt. Whoever holds the ledger and knows all rows but one can try what the last one
is: a ledger is as secret as its table, and only its owner may read it. None of this holds against
somebody who may write all of these files: digests show mistakes, not a forger.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from filelock import FileLock, Timeout

from dpviz.accounting.composition import epsilon_of_rho, rho_meeting, rho_of_pure
from dpviz.accounting.gaussian import proved_epsilon
from dpviz.accounting.profiles import GaussianSketch, ProfileLoss, WishartNoise
from dpviz.core.errors import DpvizError, InvalidSetting
from dpviz.core.files import flush_folder, strict_json
from dpviz.core.number_text import decimals, numeral, rows_words
from dpviz.core.parts import ApproximatePart, GaussianPart, LaplacePart, PurePart
from dpviz.core.platform import server_options
from dpviz.core.problem import Budget, Relation, Unit
from dpviz.preparation.account import Composed

ACCOUNTS = ("basic", "zcdp", "composed")
RELEASE, FIT, CARD, PAGE = "release", "fit", "card", "page"
_FORMAT = 3
_WAIT_SECONDS = 60.0
_START = "dpviz ledger"
_UNFINISHED = ".unfinished"
# A limit reached to the last rounding is kept to; 1e-12 of it is no privacy.
_ROUNDING = 1e-12
_COMPOSED_ROOM = 1 + 1e-9
_SHORT = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_KEPT = re.compile(rf"(\d{{6,}})-([0-9a-f]{{{_SHORT}}})\.json")
_NOTHING = "nothing was spent"
_LOST = "it was cut, or an old copy was put in its place"
_OTHER = "it went on from an old copy, or from another ledger"

_Head: TypeAlias = tuple[int, str]
_Kept: TypeAlias = tuple[int, str, Path]


class LedgerError(DpvizError):
    """A ledger cannot be read, or will not pay; the message says why in one sentence."""


class LedgerDamaged(LedgerError):
    """A line is not what was written."""


@dataclass(frozen=True)
class Spend:
    """One spend of a ledger.

    Attributes
    ----------
    mechanism : str
        Text of the variant.
    epsilon, delta : float
        What is spent.
    rho : float or None
        The zCDP parameter, where the release has one.
    purpose : str
        What kind: ``release``, ``fit`` of an estimator, or the user's own words.
    settings : str
        Digest of all settings of the release; empty if not given.
    schema : str
        Digest of what was declared of the table; empty if not given.
    table : str
        Its fingerprint, from `Ledger.fingerprint`; empty for rows that came as an array.
    token : str
        Of the form that was sent, which is spent once; empty without one.
    approximate : bool
        Whether the draw is of the right law only in the limit.
    stated_purpose, by : str
        What it is for and who asked for it, in their own words; empty where nobody said.
    rows : int or None
        Most rows of a person that it is calibrated for; 0 where it holds whatever their number is,
        as for rows or where a column cuts those of each person; None where nobody says.
    noise : (float, int, int) or None
        Scale, sensitivity and number of coordinates of discrete Gaussian noise, by which it is
        priced for a person with more rows.
    composed : Composed or None
        What it does, for a ledger that composes; where it is None its epsilon and delta count.
    when : str
        Date and time of the writing, UTC, ISO 8601; empty before.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    purpose: str = ""
    settings: str = ""
    schema: str = ""
    table: str = ""
    token: str = ""
    approximate: bool = False
    stated_purpose: str = ""
    by: str = ""
    rows: int | None = None
    noise: tuple[float, int, int] | None = None
    composed: Composed | None = None
    when: str = ""

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta)

    @property
    def releases(self) -> bool:
        """Whether a release is kept of it, if all went well."""
        return self.purpose == RELEASE

    def priced(self, rows: int | None) -> Spend:
        """Return what this costs a person with some rows, which may be more than it is made for.

        Notes
        -----
        A person of c m rows is changed in c steps of m rows, so that what was calibrated for m
        moves by at most c times its sensitivity in any norm, for whole c or not: m counts rows,
        and each moves it by at most an m-th of the sensitivity. Discrete Gaussian noise of the same
        scale then has c^2 rho and is within the same distance of rounded noise, so the lesser of
        the two proofs holds at delta; a pure epsilon becomes c epsilon. Of any other release with a
        rho, a group of c whole steps has c^2 rho; nothing else is priced.
        """
        if not self.rows or rows is None or rows <= self.rows:
            return self
        times = rows / self.rows * (1 + _ROUNDING)
        if self.delta == 0:
            epsilon = times * self.epsilon
            return replace(self, epsilon=epsilon, rho=rho_of_pure(epsilon), composed=None)
        if self.rho is None:
            raise LedgerError(
                f"what {self.mechanism} costs a person of {rows_words(rows)} is not known; "
                f"{_NOTHING}."
            )
        rho = (math.ceil(rows / self.rows) if self.noise is None else times) ** 2 * self.rho
        found = Budget(epsilon_of_rho(rho, self.delta), self.delta)
        if self.noise is not None:
            scale, sensitivity, coordinates = self.noise
            # up: as whole numbers, which no rounding makes less
            moved = -(-sensitivity * rows // self.rows)
            exact = proved_epsilon(found, scale, moved, coordinates)
            found = found if exact is None else Budget(exact, self.delta)
        # never below what it costs persons of fewer rows
        return replace(self, epsilon=max(found.epsilon, self.epsilon), rho=rho, composed=None)

    def to_json(self) -> dict[str, Any]:
        """Return the spend as it stands in the file."""
        done = self.composed and [
            [_written(part) for part in self.composed.parts],
            [[*_written(loss.profile), loss.relation] for loss in self.composed.known],
        ]
        said = {one.name: getattr(self, one.name) for one in fields(self)[:-2]}
        return {"when": self.when, **said, **({} if done is None else {"composed": done})}

    @classmethod
    def _from(cls, found: Mapping[str, Any]) -> Spend:
        rho = None if found["rho"] is None else _number(found["rho"])
        if (rho is not None and not 0 <= rho < math.inf) or not isinstance(
            found["approximate"], bool
        ):
            raise ValueError
        texts = (
            "when", "mechanism", "purpose", "settings", "schema", "table", "token",
            "stated_purpose", "by",
        )  # fmt: skip
        noise = found["noise"]
        if noise is not None:
            scale, *whole = noise
            sensitivity, coordinates = map(_whole, whole)
            noise = _number(scale), sensitivity, coordinates
        return cls(
            epsilon=_number(found["epsilon"]),
            delta=_number(found["delta"]),
            rho=rho,
            approximate=found["approximate"],
            **{name: _text(found[name]) for name in texts},
            rows=None if found["rows"] is None else _whole(found["rows"]),
            noise=noise,
            composed=_composed(found.get("composed")),
        )


_KINDS: Mapping[str, Any] = {
    kind.__name__: kind
    for kind in (GaussianPart, LaplacePart, PurePart, ApproximatePart, WishartNoise, GaussianSketch)
}


def writable(composed: Composed | None) -> Composed | None:
    """Return what a file can hold; None where a profile is its author's own, and epsilons add."""
    known = () if composed is None else (loss.profile for loss in composed.known)
    return None if any(type(one) not in _KINDS.values() for one in known) else composed


def _written(one: object) -> list[Any]:
    # JSON has no infinity, which is what a width has that is not stated
    return [type(one).__name__, {name: v for name, v in vars(one).items() if v != math.inf}]


def _made(kind: str, fields: Mapping[str, Any]) -> Any:
    return _KINDS[kind](**fields)


def _composed(written: Any) -> Composed | None:
    if written is None:
        return None
    parts, known = written
    losses = [ProfileLoss(_made(kind, of), Relation(relation)) for kind, of, relation in known]
    return Composed(tuple(_made(*part) for part in parts), tuple(losses))


@dataclass(frozen=True)
class Contents:
    """What a ledger says.

    Attributes
    ----------
    limit : Budget
        The most that may be spent.
    account : str
        ``basic`` adds epsilons and deltas; ``zcdp`` adds rhos and quotes epsilon at the limit's
        delta, as ``composed`` does by all that was done. Fixed when the ledger is made, so that
        nobody picks the kinder one afterwards.
    relation : Relation
        Under which every spend counts.
    unit : Unit
        Who counts as one.
    stated_rows : int or None
        Most rows of a person, where that was stated when the ledger was made.
    schema : str
        Digest of the only schema that may be released; empty where any may.
    purpose : str
        What the ledger is for, in its owner's words.
    spends : tuple of Spend
    tables : tuple of str
        Fingerprints of the tables it is about.
    digests : tuple of str
        Of every line; the last one is the head.
    heads : tuple of str
        Of the line of each spend.
    closed : frozenset of (int, str, str)
        Number of a spend, what was written of it, and the SHA-256 digest of that file.
    salt : str
        Key of the fingerprints; a secret.
    """

    limit: Budget
    account: str
    relation: Relation
    unit: Unit
    stated_rows: int | None
    schema: str
    purpose: str
    spends: tuple[Spend, ...]
    tables: tuple[str, ...]
    digests: tuple[str, ...]
    heads: tuple[str, ...]
    closed: frozenset[tuple[int, str, str]]
    salt: str = field(repr=False)

    @property
    def identity(self) -> str:
        """What tells this ledger from every other: the digest of its heading."""
        return self.digests[0]

    @property
    def rows(self) -> int | None:
        """Most rows of a person that all spends count for; None until somebody says."""
        return self.stated_rows or next((spend.rows for spend in self.spends if spend.rows), None)

    @property
    def priced(self) -> tuple[Spend, ...]:
        """The spends, each at what it costs one of the ledger's persons."""
        return tuple(spend.priced(self.rows) for spend in self.spends)

    @property
    def who(self) -> str:
        """Who counts as one, in words."""
        some = "" if self.rows is None else f" of at most {rows_words(self.rows)}"
        return f"{self.unit}{some}"

    @property
    def total(self) -> tuple[float, float]:
        """Epsilon and delta of all spends together, by the ledger's account."""
        return _total(self.priced, self.account, self.limit)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta that may still be spent.

        Under ``zcdp`` what one more release may cost, quoted at the limit's delta.
        """
        if self.account != "zcdp":
            epsilon, delta = self.total
            return _rest(self.limit.epsilon, epsilon), _rest(self.limit.delta, delta)
        rho, failing = _rho(self.priced)
        room = self.limit.delta - failing
        if room <= 0:
            return 0.0, 0.0
        rest = rho_meeting(self.limit.epsilon, room) - rho
        return (epsilon_of_rho(rest, room) if rest > 0 else 0.0), room

    def number_of(self, token: str) -> int | None:
        """Return which spend a form became, or None."""
        numbers = (at for at, spend in enumerate(self.spends, start=1) if spend.token == token)
        return next(numbers, None)

    def written(self, number: int, what: str) -> set[str]:
        """Return the digests of the files of a kind that were written of a spend."""
        return {digest for at, kind, digest in self.closed if (at, kind) == (number, what)}

    def receipt(self, number: int) -> Receipt:
        """Return what the ledger said when a spend was written."""
        # as it stood then: later spends are no part of what it said
        then = replace(self, spends=self.spends[:number])
        spend, head = self.spends[number - 1], self.heads[number - 1]
        return Receipt(self.identity, number, head, spend, then.total, then.left)

    def left_after(self, spend: Spend) -> tuple[float, float]:
        """Return epsilon and delta that could still be spent after one more."""
        return replace(self, spends=(*self.spends, spend)).left


def _rest(limit: float, spent: float) -> float:
    """Return what is left of a limit; what its roundings leave is nothing."""
    rest = limit - spent
    return rest if rest > limit * _ROUNDING else 0.0


@dataclass(frozen=True)
class Receipt:
    """What a ledger says of one spend, and what a release carries of it.

    Attributes
    ----------
    ledger : str
        Identity of the ledger.
    number : int
        Of the spend, from 1.
    head : str
        Digest of its line, and so of every line before.
    spend : Spend
    total, left : (float, float)
        Epsilon and delta after it.
    """

    ledger: str
    number: int
    head: str
    spend: Spend
    total: tuple[float, float]
    left: tuple[float, float]

    @property
    def said(self) -> str:
        """What the ledger says after the spend, in one sentence."""
        epsilon, delta = self.total
        return (
            f"This is spend number {self.number} in the ledger, which stands at epsilon "
            f"{numeral(epsilon, 6)} and delta {numeral(delta, 3)} now and has "
            f"{numeral(self.left[0], 6)} and {numeral(self.left[1], 3)} left."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the part of a release's file that is about the ledger."""
        return {
            "id": self.ledger,
            "spends": self.number,
            "head": self.head,
            "epsilon": self.total[0],
            "delta": self.total[1],
            "left": {"epsilon": self.left[0], "delta": self.left[1]},
        }


@dataclass(frozen=True)
class Ledger:
    """A ledger by its file; the object holds nothing else and may be copied freely.

    Attributes
    ----------
    path : Path
        The file, or a symbolic link to it: the link is followed before anything is locked. Beside
        the file lie ``.lock``, ``.head`` and ``.releases``.
    """

    path: Path

    # --- what lies where ----------------------------------------------------------------------

    @property
    def file(self) -> Path:
        """The file itself, whatever links lead to it."""
        return Path(os.path.realpath(self.path))

    @property
    def folder(self) -> Path:
        """Where its releases are kept."""
        return _beside(self.file, ".releases")

    @property
    def own_files(self) -> tuple[Path, ...]:
        """Every path that belongs to the ledger; nothing else may be written there."""
        return (self.file, *(_beside(self.file, end) for end in (".lock", ".head", ".releases")))

    def kept(self) -> dict[int, Path]:
        """Return the kept releases by the number of their spend."""
        return {number: path for number, _, path in self._kept()}

    def name_of(self, receipt: Receipt) -> Path:
        """Return where the release of a spend is kept."""
        return self.folder / f"{receipt.number:06d}-{receipt.head[:_SHORT]}.json"

    # --- what can be done with it -------------------------------------------------------------

    def create(
        self,
        limit: Budget,
        relation: Relation,
        account: str = "basic",
        *,
        unit: Unit = Unit.ROW,
        rows: int | None = None,
        schema: str = "",
        purpose: str = "",
    ) -> Contents:
        """Make an empty ledger that only its owner may read.

        Parameters
        ----------
        limit : Budget
            The most that may be spent, ever.
        relation : Relation
            Under which spends count; those under another are refused.
        account : str
            One of `ACCOUNTS`.
        unit : Unit
            Who counts as one: a row, or a person, where schemas say how many rows one has.
        rows : int, optional
            Most rows of a person; the first release that states a bound says it else.
        schema : str
            Digest of the only schema that may be released; empty for any.
        purpose : str
            What it is for.

        Raises
        ------
        LedgerError
            If the file is there already, or cannot be written.
        InvalidSetting
            If the account is not known, or a zcdp account has no limit with a delta.
        """
        if account not in ACCOUNTS:
            raise InvalidSetting("account", f"one of {', '.join(ACCOUNTS)}", account, "--account")
        if account == "zcdp" and limit.delta == 0:
            raise InvalidSetting(
                "limit", "given with a delta above 0 for a zcdp account", limit.delta, "--limit"
            )
        file = self.file
        with _Lock(file):
            # lexists: a link whose ledger is away is no free name either
            if os.path.lexists(file) or _left_of(file):
                raise LedgerError(
                    f"ledger {self.path.name} is there already, or what belongs to one: its limit "
                    "was set when it was made."
                )
            heading = {
                "dpviz_ledger": _FORMAT,
                "made": _now(),
                "limit": [limit.epsilon, limit.delta],
                "account": account,
                "relation": str(relation),
                "unit": str(unit),
                "rows": rows,
                "schema": schema,
                "purpose": purpose,
                # a key, so that nobody tells by trying which table a fingerprint is of
                "salt": secrets.token_hex(32),
            }
            lines = [_line(heading, _START)]
            self._write(file, lines)
        return self._parse(lines)

    def read(self) -> Contents:
        """Return what the ledger says.

        Raises
        ------
        LedgerError
            If the file is not there, cannot be read, is damaged, or is behind its own releases.
        """
        witnesses = self._witnesses()  # first: they must not be ahead of what is read
        contents = self.read_alone()
        for problem in self._behind(contents, witnesses):
            raise LedgerError(f"{problem}; {_NOTHING}.")
        return contents

    def read_alone(self) -> Contents:
        """Return what the file says, whatever lies beside it."""
        return self._parse(self._lines())

    def behind_head(self) -> list[str]:
        """Return what of the file does not fit the last spend, as beginnings of sentences."""
        last, _ = self._witnesses()
        return self._behind_head(self.read_alone(), last)

    def fingerprint(self, content: Iterable[bytes]) -> str:
        """Return the ledger's own digest of a table's bytes."""
        made = hashlib.blake2b(key=bytes.fromhex(self.read().salt), digest_size=32)
        for piece in content:
            made.update(piece)
        return made.hexdigest()

    def others(self, content: Callable[[], Iterable[bytes]]) -> list[str]:
        """Return the other ledgers in this one's folder that are about the same table.

        Parameters
        ----------
        content : callable
            Returns the table's bytes, once for each ledger that is about any.
        """
        own, found = self.read().identity, []
        for head in sorted(self.file.parent.glob("*.head")):
            other = Ledger(head.with_suffix(""))
            # one that cannot be read has a reader of its own, who will be told
            with suppress(LedgerError):
                contents = other.read_alone()
                if contents.identity == own or not contents.tables:
                    continue
                if other.fingerprint(content()) in contents.tables:
                    found.append(other.path.name)
        return found

    def bind(self, table: str, purpose: str = "") -> Contents:
        """Write down that a table is one this ledger is about.

        The first spend does so by itself; a table whose bytes changed, such as a corrected export
        of the same people, is added here.

        Parameters
        ----------
        table : str
            From `fingerprint`.
        purpose : str
            Why, in the owner's words.
        """
        file = self.file
        with _Lock(file):
            lines = self._lines()
            contents = self._checked(lines)
            if table in contents.tables:
                return contents
            lines.append(_bound(table, purpose, lines[-1]))
            self._write(file, lines)
        return self._parse(lines)

    def check(self, spend: Spend, relation: Relation, unit: Unit = Unit.ROW) -> Contents:
        """Return what the ledger says, or raise `LedgerError` if it would not pay for this."""
        contents = self.read()
        self._payable(contents, spend, relation, unit)
        return contents

    def spend(self, spend: Spend, relation: Relation, unit: Unit = Unit.ROW) -> Receipt:
        """Write a spend down; call it before the data is touched.

        Parameters
        ----------
        spend : Spend
            Its date is that of the writing. Its table, if it has one, is bound to a ledger that
            has none.
        relation : Relation
            Under which it is; that of the ledger.
        unit : Unit
            Who counts as one; that of the ledger.

        Returns
        -------
        Receipt
            It is on the disk when this returns.

        Raises
        ------
        LedgerError
            If there is no such ledger, it is of another relation, unit, schema or table, the total
            would pass the limit, the token is spent, the file is damaged, behind its releases or
            cannot be written, or another process holds it for more than a minute. Nothing is then
            written.
        """
        return spend_in([self], spend, relation, unit)[0]

    def close(self, number: int, what: str, content: bytes) -> None:
        """Write down the SHA-256 digest of a file of a spend, once it is written.

        Parameters
        ----------
        number : int
            Of the spend.
        what : {"release", "card", "page"}
        content : bytes
            Of the file.
        """
        file, digest = self.file, sha256(content)
        with _Lock(file):
            lines = self._lines()
            contents = self._checked(lines)
            if not 1 <= number <= len(contents.spends):
                raise LedgerError(f"ledger {self.path.name} has no spend {number}.")
            if (number, what, digest) not in contents.closed:
                line = {"closes": number, "what": what, "sha256": digest, "when": _now()}
                self._write(file, [*lines, _line(line, _digest_of(lines[-1]))])

    # --- what is refused ----------------------------------------------------------------------

    def _payable(self, contents: Contents, made: Spend, relation: Relation, unit: Unit) -> None:
        name, limit = self.path.name, contents.limit
        if relation != contents.relation or unit != contents.unit:
            raise LedgerError(
                f"ledger {name} adds up releases under the relation {contents.relation}, one "
                f"{contents.unit} at a time. This release is under {relation}, one {unit} at a "
                f"time, so it cannot be added; {_NOTHING}."
            )
        if contents.unit is Unit.PERSON:
            self._same_person(contents, made)
        if contents.schema and made.schema != contents.schema:
            raise LedgerError(
                f"ledger {name} was made for one schema, and this release has another; {_NOTHING}."
            )
        if contents.purpose and _other(made.stated_purpose, contents.purpose):
            raise LedgerError(
                f"ledger {name} pays for {contents.purpose!r}, and this release is for "
                f"{made.stated_purpose!r}; {_NOTHING}."
            )
        if made.table and contents.tables and made.table not in contents.tables:
            raise LedgerError(
                f"ledger {name} is about another table; if this one holds the same people, say "
                f"dpviz ledger bind {name} TABLE; {_NOTHING}."
            )
        number = contents.number_of(made.token) if made.token else None
        if number is not None:
            raise LedgerError(
                f"this form was sent before and is spend number {number} of ledger {name}; nothing "
                "more was spent."
            )
        after = replace(contents, spends=(*contents.spends, made))
        epsilon, delta = after.total
        cost, here = (numeral(one.epsilon, 6) for one in (made, after.priced[-1]))
        if here != cost:
            cost += f", which is {here} for one {after.who},"
        room = 1 + _ROUNDING
        # what is composed numerically is known to ten digits
        wide = _COMPOSED_ROOM if contents.account == "composed" else room
        if epsilon > limit.epsilon * wide or delta > limit.delta * room:
            spent_epsilon, spent_delta = contents.total
            raise LedgerError(
                f"ledger {name} refuses: epsilon {cost} and delta {numeral(made.delta, 3)} would "
                f"pass its limit of {numeral(limit.epsilon, 6)} and {numeral(limit.delta, 6)}. "
                f"Epsilon {numeral(spent_epsilon, 6)} and delta {numeral(spent_delta, 3)} are "
                f"already spent; {_NOTHING}."
            )

    def _same_person(self, contents: Contents, made: Spend) -> None:
        """Raise where a spend says less of a person's rows, or more, than others of the ledger."""
        name, rows = self.path.name, contents.rows
        if made.rows is None:
            raise LedgerError(
                f"ledger {name} adds up persons, and this spend does not say how many rows one "
                f"has; {_NOTHING}."
            )
        if rows is not None and made.rows > rows:
            raise LedgerError(
                f"ledger {name} counts persons of at most {rows_words(rows)}. This release allows "
                f"{made.rows:,} rows a person, for whom earlier spends cost more. Make a ledger "
                f"for {made.rows:,} rows a person; {_NOTHING}."
            )

    def _checked(self, lines: list[str]) -> Contents:
        """Return what lines say; call it under the lock."""
        contents = self._parse(lines)
        for problem in self._behind(contents, self._witnesses()):
            raise LedgerError(f"{problem}; {_NOTHING}.")
        return contents

    def _kept(self) -> list[_Kept]:
        """Return the kept releases: number, beginning of the head, path."""
        try:
            found = list(self.folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise LedgerError(
                f"the releases beside ledger {self.path.name} cannot be read: {error.strerror}; "
                f"{_NOTHING}."
            ) from None
        matched = [(path, _KEPT.fullmatch(path.name)) for path in sorted(found)]
        return [(int(match[1]), match[2], path) for path, match in matched if match]

    def _witnesses(self) -> tuple[_Head | None, list[_Kept]]:
        """Return what lies beside the file: lines and head at the last spend, kept releases."""
        kept = self._kept()
        try:
            text = _beside(self.file, ".head").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None, kept
        except (OSError, UnicodeDecodeError):
            text = ""
        try:
            found = strict_json(text)
            return (int(_number(found["lines"])), _text(found["head"])), kept
        except (ValueError, TypeError, KeyError):
            raise LedgerError(
                f"{self.path.name}.head beside the ledger is damaged: restore both from a copy; "
                f"{_NOTHING}."
            ) from None

    def _behind(
        self,
        contents: Contents,
        witnesses: tuple[_Head | None, list[_Kept]],
    ) -> list[str]:
        name, (last, kept) = self.path.name, witnesses
        found = self._behind_head(contents, last)
        for number, short, path in kept:
            if number > len(contents.heads):
                found.append(
                    f"ledger {name} ends at spend {len(contents.heads)} and the kept release "
                    f"{path.name} is of spend {number}: {_LOST}"
                )
            elif number < 1 or not contents.heads[number - 1].startswith(short):
                found.append(
                    f"the kept release {path.name} is not of spend {number} of ledger {name}: "
                    f"{_OTHER}"
                )
        return found

    def _behind_head(self, contents: Contents, last: _Head | None) -> list[str]:
        if last is None:
            return []
        name, (lines, head) = self.path.name, last
        if lines > len(contents.digests):
            return [
                f"ledger {name} has {len(contents.digests)} of the {lines} lines that were "
                f"written: {_LOST}"
            ]
        if lines < 1 or contents.digests[lines - 1] != head:
            return [f"line {lines} of ledger {name} is not the one written: {_OTHER}"]
        return []

    # --- the file -----------------------------------------------------------------------------

    def _lines(self) -> list[str]:
        name, file = self.path.name, self.file
        try:
            seen = file.stat()
            if not stat.S_ISREG(seen.st_mode):
                raise LedgerError(f"ledger {name} is not a file; {_NOTHING}.")
            if seen.st_nlink > 1:
                raise LedgerError(
                    f"ledger {name} has {seen.st_nlink} names (hard links). A spend would be seen "
                    f"under one name only: remove the others; {_NOTHING}."
                )
            text = file.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise LedgerError(
                f"ledger {name} does not exist: make one with dpviz ledger new {name} --limit "
                f"EPSILON,DELTA --relation {'|'.join(Relation)}; {_NOTHING}."
            ) from None
        except UnicodeDecodeError:
            raise self._damaged(1) from None
        except OSError as error:
            raise LedgerError(f"ledger {name} cannot be read: {error.strerror}.") from None
        # each line is written with its end, so the last one was cut
        if not text.endswith("\n"):
            raise self._damaged(text.count("\n") + 1)
        return text[:-1].split("\n")

    def _parse(self, lines: list[str]) -> Contents:
        before, objects = _START, []
        for number, line in enumerate(lines, start=1):
            try:
                found = strict_json(line)
                if number == 1 and found["dpviz_ledger"] != _FORMAT:
                    break
                good = isinstance(found, dict) and found["check"] == _check(found, before)
            except (ValueError, TypeError, KeyError):
                good = False
            if not good:
                raise self._damaged(number)
            objects.append(found)
            before = found["check"]
        if not objects:
            raise LedgerError(
                f"ledger {self.path.name} has another format; this version reads format {_FORMAT} "
                f"only. Make a new ledger whose limit is what is left of this one; {_NOTHING}."
            )
        spends: list[Spend] = []
        tables, heads, closed, number = [], [], set(), 1
        try:
            heading = objects[0]
            epsilon, delta = heading["limit"]
            limit = Budget(_number(epsilon), _number(delta))
            relation, account = Relation(heading["relation"]), heading["account"]
            schema, purpose, salt = (_text(heading[key]) for key in ("schema", "purpose", "salt"))
            bytes.fromhex(salt)
            unit, rows = Unit(heading["unit"]), heading["rows"]
            rows = None if rows is None else _whole(rows)
            if account not in ACCOUNTS:
                raise ValueError
            for found in objects[1:]:
                number += 1
                if "table" in found and "spend" not in found:
                    tables.append(_text(found["table"]))
                    continue
                if "closes" in found:
                    closes, *said = (found[key] for key in ("closes", "what", "sha256"))
                    if not 1 <= _whole(closes) <= len(spends):
                        raise ValueError
                    closed.add((closes, *map(_text, said)))
                    continue
                if found["spend"] != len(spends) + 1:
                    raise ValueError
                spends.append(Spend._from(found))
                heads.append(found["check"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._damaged(number) from None
        return Contents(
            limit,
            account,
            relation,
            unit,
            rows,
            schema,
            purpose,
            tuple(spends),
            tuple(tables),
            tuple(found["check"] for found in objects),
            tuple(heads),
            frozenset(closed),
            salt,
        )

    def _damaged(self, line: int) -> LedgerDamaged:
        return LedgerDamaged(
            f"ledger {self.path.name} is damaged or was written without its lock, from line {line} "
            f"on: restore it from a copy; {_NOTHING}."
        )

    def _write(self, file: Path, lines: list[str]) -> None:
        folder, name = file.parent, file.name
        head = json.dumps({"lines": len(lines), "head": _digest_of(lines[-1])})
        begun: list[Path] = []
        try:
            # What a process left that was killed here; nobody else writes, the lock is ours.
            mine = re.compile(rf"\.{re.escape(name)}(\.head)?\.\d+{re.escape(_UNFINISHED)}")
            for left in folder.iterdir():
                if mine.fullmatch(left.name):
                    left.unlink(missing_ok=True)
            mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
            for place, text in (
                (file, "".join(f"{line}\n" for line in lines)),
                (_beside(file, ".head"), f"{head}\n"),
            ):
                aside = folder / f".{place.name}.{os.getpid()}{_UNFINISHED}"
                begun.append(aside)
                _write_new(aside, text, mode)
            os.replace(begun[0], file)
        except OSError as error:
            for aside in begun:
                aside.unlink(missing_ok=True)
            raise LedgerError(
                f"ledger {name} cannot be written: {error.strerror}; {_NOTHING}."
            ) from None
        # From here on it is written. A head that stays behind refuses nothing that it should not.
        with suppress(OSError):
            os.replace(begun[1], _beside(file, ".head"))
        flush_folder(folder)


def spend_in(
    ledgers: Sequence[Ledger], spend: Spend, relation: Relation, unit: Unit
) -> list[Receipt]:
    """Write a spend down in several ledgers, in all of them or in none; see `Ledger.spend`."""
    with ExitStack() as held:
        # in one order everywhere: two processes that hold two of them never wait for each other
        for file in sorted({ledger.file for ledger in ledgers}):
            held.enter_context(_Lock(file))
        written: list[tuple[Ledger, int, list[str]]] = []
        for ledger in ledgers:
            lines = ledger._lines()
            contents = ledger._checked(lines)
            made = replace(spend, when=_now())
            if contents.account != "composed":
                made = replace(made, composed=None)
            # asked again, as another process may have spent since `check`
            ledger._payable(contents, made, relation, unit)
            if made.table and not contents.tables:
                lines.append(_bound(made.table, "", lines[-1]))
            number = len(contents.spends) + 1
            lines.append(_line({"spend": number, **made.to_json()}, _digest_of(lines[-1])))
            written.append((ledger, number, lines))
        for ledger, _, lines in written:
            ledger._write(ledger.file, lines)
    return [ledger._parse(lines).receipt(number) for ledger, number, lines in written]


def ledger_folder() -> Path:
    """Return where ledgers lie that are known by a name: ``DPVIZ_LEDGERS`` or the user's data."""
    given = os.environ.get("DPVIZ_LEDGERS")
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "dpviz" / "ledgers"


def ledger_named(name: str) -> Path:
    """Return the file of a ledger known by a name; its folder is made.

    Raises
    ------
    InvalidSetting
        If the name could lead anywhere else.
    LedgerError
        If the folder cannot be made, or is gone with the machine's or the container's next start,
        unless ``DPVIZ_LEDGERS_TEMPORARY`` is on.
    """
    if not _NAME.fullmatch(name):
        raise InvalidSetting("ledger", "a name of letters, digits and dashes", name or "nothing")
    folder = ledger_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"ledger {name} cannot be written: {error.strerror}; {_NOTHING}."
        ) from None
    fleeting = _fleeting(folder)
    if fleeting is not None and not server_options().temporary_ledgers:
        raise LedgerError(
            f"ledger {name} would lie {fleeting}. If it is lost, its budget can be spent again. "
            "Let DPVIZ_LEDGERS name a folder that is kept, such as a volume, or say "
            f"DPVIZ_LEDGERS_TEMPORARY=on; {_NOTHING}."
        )
    return folder / f"{name}.jsonl"


def _fleeting(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return where a folder lies that does not last, in words, or None where it may well last."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return None
    there, kind = Path("/"), ""
    for line in lines:
        before, _, after = line.partition(" - ")
        # a blank in a name is written as its number
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4]))
        if folder.resolve().is_relative_to(point) and len(point.parts) >= len(there.parts):
            there, kind = point, after.split()[0]  # what was mounted last hides what was there
    if kind in ("tmpfs", "ramfs"):
        return "in memory"
    if kind == "overlay" and there == Path("/"):
        return "inside the container, and go with it"
    return None


def ledger_names() -> list[str]:
    """Return the ledgers known by a name, the one last written first."""
    try:
        found = [(path.stat().st_mtime_ns, path.stem) for path in ledger_folder().glob("*.jsonl")]
    except OSError:
        return []
    known = [(when, name) for when, name in found if _NAME.fullmatch(name)]
    return [name for _, name in sorted(known, key=lambda one: (-one[0], one[1]))]


def ledger_at(word: str | Path) -> Ledger:
    """Return the ledger in a file, or the one that pages know by this name where there is no file.

    The ledger need not be there.
    """
    path = Path(word)
    if not path.exists() and str(word) in ledger_names():
        path = ledger_named(str(word))
    return Ledger(path)


class _Lock:
    """The lock of one ledger, held while its file is read and written."""

    def __init__(self, path: Path) -> None:
        self._name, self._folder = path.name, path.parent
        self._lock = FileLock(f"{path}.lock")

    def __enter__(self) -> None:
        if not self._folder.is_dir():  # the lock would make it
            raise LedgerError(
                f"ledger {self._name} cannot be written: there is no such folder; {_NOTHING}."
            )
        try:
            self._lock.acquire(timeout=_WAIT_SECONDS, poll_interval=0.005)
        except Timeout:
            raise LedgerError(
                f"ledger {self._name} is held by another process for more than "
                f"{decimals(_WAIT_SECONDS, 0)} seconds; {_NOTHING}."
            ) from None
        except OSError as error:
            raise LedgerError(
                f"ledger {self._name} cannot be written: {error.strerror}; {_NOTHING}."
            ) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _total(spends: tuple[Spend, ...], account: str, limit: Budget) -> tuple[float, float]:
    if account == "basic":
        return (
            math.fsum(spend.epsilon for spend in spends),
            math.fsum(spend.delta for spend in spends),
        )
    if account == "composed":
        return composed_epsilon(spends, limit.delta), limit.delta if spends else 0.0
    rho, failing = _rho(spends)
    # else an empty ledger would stand at the limit's delta
    if rho == 0 and failing == 0:
        return 0.0, 0.0
    left = limit.delta - failing
    return (epsilon_of_rho(rho, left) if left > 0 else math.inf), max(limit.delta, failing)


def composed_epsilon(spends: Sequence[Spend], delta: float) -> float:
    """Return what spends cost together at a delta, by the least account that is known.

    All that they did, composed, or their own epsilons and deltas added up; infinite where neither
    says anything.
    """
    if not spends:
        return 0.0
    found = math.inf
    # epsilons add up at the sum of the deltas, and at no lesser one
    if math.fsum(spend.delta for spend in spends) <= delta * _COMPOSED_ROOM:
        found = math.fsum(spend.epsilon for spend in spends)
    done = [spend.composed for spend in spends if spend.composed is not None]
    # one that is not composed leaves the others without a common account
    if len(done) < len(spends):
        return found
    parts = tuple(part for one in done for part in one.parts)
    known = tuple(loss for one in done for loss in one.known)
    return min(found, Composed(parts, known).loss().epsilon(delta))


def _rho(spends: tuple[Spend, ...]) -> tuple[float, float]:
    """Return the rho of all spends, and the probability that those without one fail.

    A spend without a rho is taken as its pure part, after a failure of probability delta.
    """
    rho = math.fsum(
        rho_of_pure(spend.epsilon) if spend.rho is None else spend.rho for spend in spends
    )
    return rho, math.fsum(spend.delta for spend in spends if spend.rho is None)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _beside(file: Path, end: str) -> Path:
    return file.with_name(file.name + end)


def _left_of(file: Path) -> bool:
    """Whether a ledger of this name was here: a new one would give its budget back."""
    return _beside(file, ".head").exists() or _beside(file, ".releases").exists()


def _number(value: object) -> float:
    # true is a number to Python, and would count as 1
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bound(table: str, purpose: str, before: str) -> str:
    return _line({"table": table, "when": _now(), "purpose": purpose}, _digest_of(before))


def _other(stated: str, purpose: str) -> bool:
    """Return whether a stated purpose is another than that of a ledger."""
    said, own = (" ".join(words.casefold().split()) for words in (stated, purpose))
    return bool(said) and said != own


def sha256(content: bytes) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def _line(found: dict[str, Any], before: str) -> str:
    return json.dumps({**found, "check": _check(found, before)}, allow_nan=False)


def _check(found: dict[str, Any], before: str) -> str:
    # with the digest of the line before, so that one taken out breaks all that follow
    text = json.dumps({key: found[key] for key in sorted(found) if key != "check"})
    return hashlib.blake2b(f"{before}\n{text}".encode(), digest_size=32).hexdigest()


def _digest_of(line: str) -> str:
    found: str = json.loads(line)["check"]
    return found


def _write_new(path: Path, text: str, mode: int) -> None:
    # O_EXCL: never into a file, or through a link, that somebody else laid there
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.chmod(path, mode)  # whatever the umask: a ledger that a group shares stays shared
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
