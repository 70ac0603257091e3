"""A ledger: a file that records the budget used on one table, and its limit.

The file is text, one JSON object a line. Its heading holds what never changes: the limit, how
spends add up, the neighbouring relation, the protected unit (a row or a person), a schema if one
was fixed, and a secret salt. Further lines record each spend, each table of the ledger, and each
file of a spend: release, privacy card and page to print. A file's line completes its spend.
Every line carries a digest of itself and the previous line, so the last digest, the head, covers
the whole file. The head reveals a line that was changed, lost in the middle or written without the
lock. The head is also stored beside the file (``.head``), in the name of each stored release
(``.releases``) and in the release itself. A ledger older than any stored head is refused.

A spend is written before the data is touched: a killed process leaves at most a spend without a
release, never a release without a spend. A process killed between a release and the line for its
file leaves a spend that counts and a release file that no line confirms. A new version of the
ledger is written beside the old file, flushed to the disk and then replaces it as a whole. A lock
excludes every other process. A spend never creates a ledger.

A table is identified by a digest of its bytes, keyed by the heading's salt. Without the salt the
digest reveals nothing. Anyone who holds the ledger and knows all rows except one can test guesses
for this row. So a ledger is as secret as its table, and only its owner may read it. Nothing here
protects against somebody who may write all of these files: digests reveal mistakes, not forgery.
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
# Rounding may lift a total above its limit. An excess of 1e-12 of the limit is harmless.
_ROUNDING = 1e-12
_COMPOSED_ROOM = 1 + 1e-9
_SHORT = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
_KEPT = re.compile(rf"(\d{{6,}})-([0-9a-f]{{{_SHORT}}})\.json")
_NOTHING = "nothing was spent"
_LOST = "it was truncated, or replaced by an old copy"
_OTHER = "it continued from an old copy, or from another ledger"

_Head: TypeAlias = tuple[int, str]
_Kept: TypeAlias = tuple[int, str, Path]


class LedgerError(DpvizError):
    """Raised if a ledger cannot be read, or refuses a spend; the message states the reason."""


class LedgerDamaged(LedgerError):
    """Raised if a line differs from the line that was written."""


@dataclass(frozen=True)
class Spend:
    """One use of a ledger's budget, called a spend.

    Attributes
    ----------
    mechanism : str
        Text of the mechanism variant.
    epsilon, delta : float
        The budget that the spend uses.
    rho : float or None
        The zCDP parameter, if the release has such a parameter.
    purpose : str
        Kind of spend: ``release``, ``fit`` of an estimator, or the user's own words.
    settings : str
        Digest of all settings of the release; empty if not given.
    schema : str
        Digest of the declarations about the table; empty if not given.
    table : str
        Fingerprint of the table, from `Ledger.fingerprint`; empty for rows that came as an array.
    token : str
        Token of the submitted form, which allows one spend; empty without a form.
    approximate : bool
        Whether the sampler follows the proved distribution only in the limit.
    stated_purpose, by : str
        The purpose, and the person who requested the release, as typed; empty if not stated.
    rows : int or None
        Maximum number of rows of a person for which the noise is calibrated. 0 if any number is
        allowed, as for rows or if a column limits each person's rows; None if not stated.
    noise : (float, int, int) or None
        Scale, sensitivity and number of coordinates of discrete Gaussian noise. The three numbers
        give the cost for a person with more rows.
    composed : Composed or None
        Losses, for a ledger that composes; if None, only epsilon and delta are used.
    when : str
        Date and time at which the spend was written, UTC, ISO 8601; empty before.
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
        """Whether a release should be stored for this spend."""
        return self.purpose == RELEASE

    def priced(self, rows: int | None) -> Spend:
        """Return the cost for a person with more rows than the noise is calibrated for.

        Notes
        -----
        Changing a person of c m rows takes c steps of m rows. A statistic calibrated for m rows
        moves by at most c times its sensitivity in any norm, even if c is not whole: each row moves
        the statistic by at most an m-th of the sensitivity. Discrete Gaussian noise of the same
        scale then has c^2 rho and is within the same distance of rounded noise, so the lesser of
        the two proofs holds at delta; a pure epsilon becomes c epsilon. For any other release with
        a rho, a group of c whole steps has c^2 rho. No other cost is known.
        """
        if not self.rows or rows is None or rows <= self.rows:
            return self
        times = rows / self.rows * (1 + _ROUNDING)
        if self.delta == 0:
            epsilon = times * self.epsilon
            return replace(self, epsilon=epsilon, rho=rho_of_pure(epsilon), composed=None)
        if self.rho is None:
            raise LedgerError(
                f"the privacy cost of {self.mechanism} for a person with {rows_words(rows)} "
                f"is not known; {_NOTHING}."
            )
        rho = (math.ceil(rows / self.rows) if self.noise is None else times) ** 2 * self.rho
        found = Budget(epsilon_of_rho(rho, self.delta), self.delta)
        if self.noise is not None:
            scale, sensitivity, coordinates = self.noise
            # The division rounds up in whole numbers, which lose no digits.
            moved = -(-sensitivity * rows // self.rows)
            exact = proved_epsilon(found, scale, moved, coordinates)
            found = found if exact is None else Budget(exact, self.delta)
        # A person with several rows must never cost less than a person with fewer rows.
        return replace(self, epsilon=max(found.epsilon, self.epsilon), rho=rho, composed=None)

    def to_json(self) -> dict[str, Any]:
        """Return the spend in the form of the file."""
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
    """Return losses that a file can hold; None for a custom profile, so that epsilons add up."""
    known = () if composed is None else (loss.profile for loss in composed.known)
    return None if any(type(one) not in _KINDS.values() for one in known) else composed


def _written(one: object) -> list[Any]:
    # JSON has no infinity. An infinite width was never stated, so it is left out.
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
    """The contents of a ledger.

    Attributes
    ----------
    limit : Budget
        The largest total budget.
    account : str
        ``basic`` adds epsilons and deltas; ``zcdp`` adds rhos and states epsilon at the limit's
        delta; ``composed`` composes all losses at the limit's delta. The method is fixed when the
        ledger is created, so that nobody picks the lowest total afterwards.
    relation : Relation
        Neighbouring relation of every spend.
    unit : Unit
        The protected unit.
    stated_rows : int or None
        Maximum number of rows of a person, if stated when the ledger was created.
    schema : str
        Digest of the only schema that may be released; empty if any schema may be released.
    purpose : str
        The ledger's purpose, in its owner's words.
    spends : tuple of Spend
    tables : tuple of str
        Fingerprints of the ledger's tables.
    digests : tuple of str
        Digest of every line; the last digest is the head.
    heads : tuple of str
        Digest of the line of each spend.
    closed : frozenset of (int, str, str)
        Number of the spend, kind of the file written for it, and SHA-256 digest of this file.
    salt : str
        Secret key of the fingerprints.
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
        """The ledger's identity: the digest of its heading."""
        return self.digests[0]

    @property
    def rows(self) -> int | None:
        """Maximum number of rows of a person for which all spends count; None until stated."""
        return self.stated_rows or next((spend.rows for spend in self.spends if spend.rows), None)

    @property
    def priced(self) -> tuple[Spend, ...]:
        """The spends, each with its cost for a person of this ledger."""
        return tuple(spend.priced(self.rows) for spend in self.spends)

    @property
    def who(self) -> str:
        """The protected unit, in words."""
        some = "" if self.rows is None else f" of at most {rows_words(self.rows)}"
        return f"{self.unit}{some}"

    @property
    def total(self) -> tuple[float, float]:
        """Epsilon and delta of all spends together, by the ledger's accounting."""
        return _total(self.priced, self.account, self.limit)

    @property
    def left(self) -> tuple[float, float]:
        """Epsilon and delta that further releases may use.

        Under ``zcdp``, the largest cost of one more release, stated at the limit's delta.
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
        """Return the number of the spend for a submitted form, or None."""
        numbers = (at for at, spend in enumerate(self.spends, start=1) if spend.token == token)
        return next(numbers, None)

    def written(self, number: int, what: str) -> set[str]:
        """Return the digests of the files of one kind that were written for a spend."""
        return {digest for at, kind, digest in self.closed if (at, kind) == (number, what)}

    def receipt(self, number: int) -> Receipt:
        """Return the ledger's receipt of a spend at the time it was written."""
        # Costs recorded after this receipt are left out, because the receipt did not include them.
        then = replace(self, spends=self.spends[:number])
        spend, head = self.spends[number - 1], self.heads[number - 1]
        return Receipt(self.identity, number, head, spend, then.total, then.left)

    def left_after(self, spend: Spend) -> tuple[float, float]:
        """Return the epsilon and delta that remain after one more spend."""
        return replace(self, spends=(*self.spends, spend)).left


def _rest(limit: float, spent: float) -> float:
    """Return the remainder of a limit; a remainder within rounding counts as 0."""
    rest = limit - spent
    return rest if rest > limit * _ROUNDING else 0.0


@dataclass(frozen=True)
class Receipt:
    """The ledger's statement about one spend, which a release includes.

    Attributes
    ----------
    ledger : str
        Identity of the ledger.
    number : int
        Number of the spend, from 1.
    head : str
        Digest of the spend's line, which covers every earlier line too.
    spend : Spend
    total, left : (float, float)
        Totals of epsilon and delta after the spend.
    """

    ledger: str
    number: int
    head: str
    spend: Spend
    total: tuple[float, float]
    left: tuple[float, float]

    @property
    def said(self) -> str:
        """A sentence on the state of the ledger after the spend."""
        epsilon, delta = self.total
        return (
            f"This is spend number {self.number} of the ledger. The ledger has now used "
            f"epsilon {numeral(epsilon, 6)} and delta {numeral(delta, 3)}; epsilon "
            f"{numeral(self.left[0], 6)} and delta {numeral(self.left[1], 3)} are left."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the ledger's section of a release's file."""
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
    """A ledger, given by its file; the object holds only the path and may be copied freely.

    Attributes
    ----------
    path : Path
        The file, or a symbolic link to it. The link is resolved before locking. ``.lock``,
        ``.head`` and ``.releases`` are beside the file.
    """

    path: Path

    # --- what lies where ----------------------------------------------------------------------

    @property
    def file(self) -> Path:
        """The file itself, after resolving all links."""
        return Path(os.path.realpath(self.path))

    @property
    def folder(self) -> Path:
        """The folder of the ledger's stored releases."""
        return _beside(self.file, ".releases")

    @property
    def own_files(self) -> tuple[Path, ...]:
        """Every path that belongs to the ledger; no other file may be written to these paths."""
        return (self.file, *(_beside(self.file, end) for end in (".lock", ".head", ".releases")))

    def kept(self) -> dict[int, Path]:
        """Return the paths of stored releases by spend number."""
        return {number: path for number, _, path in self._kept()}

    def name_of(self, receipt: Receipt) -> Path:
        """Return the path of a spend's stored release."""
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
        """Create an empty ledger that only its owner may read.

        Parameters
        ----------
        limit : Budget
            The largest total budget; it can never be raised.
        relation : Relation
            Neighbouring relation of the spends; spends under another relation are refused.
        account : str
            How spends add up, one of `ACCOUNTS`.
        unit : Unit
            The protected unit: a row, or a person if schemas state how many rows a person has.
        rows : int, optional
            Maximum number of rows of a person; if omitted, the first release with a bound sets it.
        schema : str
            Digest of the only schema that may be released; empty for any schema.
        purpose : str
            Purpose of the ledger.

        Raises
        ------
        LedgerError
            If the file already exists, or cannot be written.
        InvalidSetting
            If the accounting is unknown, or zcdp accounting has no limit with a delta.
        """
        if account not in ACCOUNTS:
            raise InvalidSetting("account", f"one of {', '.join(ACCOUNTS)}", account, "--account")
        if account == "zcdp" and limit.delta == 0:
            raise InvalidSetting(
                "limit", "given with a delta above 0 for a zcdp account", limit.delta, "--limit"
            )
        file = self.file
        with _Lock(file):
            # Unlike exists, lexists is true for a broken link, which also means the name is taken.
            if os.path.lexists(file) or _left_of(file):
                raise LedgerError(
                    f"ledger {self.path.name} or one of its files exists already. "
                    "The limit of an existing ledger cannot be changed."
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
                # Fingerprints use a secret key, so that nobody can find a table by trying tables.
                "salt": secrets.token_hex(32),
            }
            lines = [_line(heading, _START)]
            self._write(file, lines)
        return self._parse(lines)

    def read(self) -> Contents:
        """Return the contents of the ledger.

        Raises
        ------
        LedgerError
            If the file is missing, cannot be read, is damaged, or is older than its own releases.
        """
        witnesses = self._witnesses()  # Read first, so that no release is newer than the contents.
        contents = self.read_alone()
        for problem in self._behind(contents, witnesses):
            raise LedgerError(f"{problem}; {_NOTHING}.")
        return contents

    def read_alone(self) -> Contents:
        """Return the contents without checking the files beside the ledger."""
        return self._parse(self._lines())

    def behind_head(self) -> list[str]:
        """Return conflicts between the file and its stored head, as beginnings of sentences."""
        last, _ = self._witnesses()
        return self._behind_head(self.read_alone(), last)

    def fingerprint(self, content: Iterable[bytes]) -> str:
        """Return the ledger's own digest of a table's bytes."""
        made = hashlib.blake2b(key=bytes.fromhex(self.read().salt), digest_size=32)
        for piece in content:
            made.update(piece)
        return made.hexdigest()

    def others(self, content: Callable[[], Iterable[bytes]]) -> list[str]:
        """Return the other ledgers in this ledger's folder that are about the same table.

        Parameters
        ----------
        content : callable
            Function that returns the table's bytes; called once for each ledger that has a table.
        """
        own, found = self.read().identity, []
        for head in sorted(self.file.parent.glob("*.head")):
            other = Ledger(head.with_suffix(""))
            # An unreadable ledger is skipped, because its own users will see the error.
            with suppress(LedgerError):
                contents = other.read_alone()
                if contents.identity == own or not contents.tables:
                    continue
                if other.fingerprint(content()) in contents.tables:
                    found.append(other.path.name)
        return found

    def bind(self, table: str, purpose: str = "") -> Contents:
        """Record that the ledger is about this table.

        The first spend adds its table automatically. Add a table here if its bytes changed, as in a
        corrected export of the same people.

        Parameters
        ----------
        table : str
            Digest of the table, from `fingerprint`.
        purpose : str
            Reason for adding the table, in the owner's words.
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
        """Return the ledger's contents, or raise `LedgerError` if it would refuse the spend."""
        contents = self.read()
        self._payable(contents, spend, relation, unit)
        return contents

    def spend(self, spend: Spend, relation: Relation, unit: Unit = Unit.ROW) -> Receipt:
        """Record a spend; call this before the data is touched.

        Parameters
        ----------
        spend : Spend
            The spend; the ledger sets its date. A ledger without a table is bound to the spend's
            table, if it has one.
        relation : Relation
            Neighbouring relation of the spend; must equal the ledger's relation.
        unit : Unit
            Protected unit; must equal the ledger's unit.

        Returns
        -------
        Receipt
            Receipt of the spend, which is on the disk when this function returns.

        Raises
        ------
        LedgerError
            If there is no such ledger; it has another relation, unit, schema or table; the total
            would exceed the limit; the token is used; the file is damaged, is older than its
            releases or cannot be written; or another process holds its lock for more than a minute.
            Then no spend is written.
        """
        return spend_in([self], spend, relation, unit)[0]

    def close(self, number: int, what: str, content: bytes) -> None:
        """Record the SHA-256 digest of a spend's file after the file is written.

        Parameters
        ----------
        number : int
            Number of the spend.
        what : {"release", "card", "page"}
        content : bytes
            Content of the file.
        """
        file, digest = self.file, sha256(content)
        with _Lock(file):
            lines = self._lines()
            contents = self._checked(lines)
            if not 1 <= number <= len(contents.spends):
                raise LedgerError(f"ledger {self.path.name} has no release number {number}.")
            if (number, what, digest) not in contents.closed:
                line = {"closes": number, "what": what, "sha256": digest, "when": _now()}
                self._write(file, [*lines, _line(line, _digest_of(lines[-1]))])

    # --- what is refused ----------------------------------------------------------------------

    def _payable(self, contents: Contents, made: Spend, relation: Relation, unit: Unit) -> None:
        name, limit = self.path.name, contents.limit
        if relation != contents.relation or unit != contents.unit:
            raise LedgerError(
                f"ledger {name} adds up the loss of one {contents.unit} under {contents.relation} "
                f"neighbours. This release states the loss of one {unit} under {relation} "
                f"neighbours, so the ledger cannot add it; {_NOTHING}."
            )
        if contents.unit is Unit.PERSON:
            self._same_person(contents, made)
        if contents.schema and made.schema != contents.schema:
            raise LedgerError(
                f"ledger {name} was made for one schema, and this release has another; {_NOTHING}."
            )
        if contents.purpose and _other(made.stated_purpose, contents.purpose):
            raise LedgerError(
                f"ledger {name} is for the purpose {contents.purpose!r}, and this release "
                f"is for {made.stated_purpose!r}; {_NOTHING}."
            )
        if made.table and contents.tables and made.table not in contents.tables:
            raise LedgerError(
                f"ledger {name} belongs to a different table. If both tables hold the same "
                f"people, run dpviz ledger bind {name} TABLE; {_NOTHING}."
            )
        number = contents.number_of(made.token) if made.token else None
        if number is not None:
            raise LedgerError(
                f"this form was sent before: its release is number {number} in ledger {name}; no "
                "further budget was spent."
            )
        after = replace(contents, spends=(*contents.spends, made))
        epsilon, delta = after.total
        cost, here = (numeral(one.epsilon, 6) for one in (made, after.priced[-1]))
        if here != cost:
            cost += f", which is {here} for one {after.who},"
        room = 1 + _ROUNDING
        # This limit is a little wider, because numerical composition has only ten exact digits.
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
        """Raise if a spend states no number of rows a person, or more than the ledger allows."""
        name, rows = self.path.name, contents.rows
        if made.rows is None:
            raise LedgerError(
                f"ledger {name} counts persons, and this release does not state how many "
                f"rows a person has; {_NOTHING}."
            )
        if rows is not None and made.rows > rows:
            raise LedgerError(
                f"ledger {name} counts persons with at most {rows_words(rows)}. This release "
                f"allows {made.rows:,} rows a person, so earlier releases would cost more. Make "
                f"a ledger for {made.rows:,} rows a person; {_NOTHING}."
            )

    def _checked(self, lines: list[str]) -> Contents:
        """Return the contents of lines after all checks; the caller must hold the lock."""
        contents = self._parse(lines)
        for problem in self._behind(contents, self._witnesses()):
            raise LedgerError(f"{problem}; {_NOTHING}.")
        return contents

    def _kept(self) -> list[_Kept]:
        """Return the stored releases as spend number, beginning of the head, and path."""
        try:
            found = list(self.folder.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise LedgerError(
                f"the releases stored with ledger {self.path.name} cannot be read: "
                f"{error.strerror}; {_NOTHING}."
            ) from None
        matched = [(path, _KEPT.fullmatch(path.name)) for path in sorted(found)]
        return [(int(match[1]), match[2], path) for path, match in matched if match]

    def _witnesses(self) -> tuple[_Head | None, list[_Kept]]:
        """Return the lines and the head at the last write, and the stored releases."""
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
                f"{self.path.name}.head is damaged: restore it and the ledger from a copy; "
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
                    f"ledger {name} ends at spend {len(contents.heads)}, but the saved "
                    f"release {path.name} is spend {number}: {_LOST}"
                )
            elif number < 1 or not contents.heads[number - 1].startswith(short):
                found.append(
                    f"the saved release {path.name} is not spend {number} of ledger {name}: "
                    f"{_OTHER}"
                )
        return found

    def _behind_head(self, contents: Contents, last: _Head | None) -> list[str]:
        if last is None:
            return []
        name, (lines, head) = self.path.name, last
        if lines > len(contents.digests):
            return [f"ledger {name} has only {len(contents.digests)} of its {lines} lines: {_LOST}"]
        if lines < 1 or contents.digests[lines - 1] != head:
            return [f"line {lines} of ledger {name} is not the line that was written: {_OTHER}"]
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
                    f"ledger {name} has {seen.st_nlink} names (hard links). A release would be "
                    f"recorded under one name only: remove the other names; {_NOTHING}."
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
        # Every complete line ends with a newline. Without one, the last line was cut off.
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
                f"ledger {self.path.name} has another format; this version reads format "
                f"{_FORMAT} only. Make a new ledger, with the unspent budget of this ledger as "
                f"its limit; {_NOTHING}."
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
            f"ledger {self.path.name} is damaged from line {line} on, or was written "
            f"without its lock: restore it from a copy; {_NOTHING}."
        )

    def _write(self, file: Path, lines: list[str]) -> None:
        folder, name = file.parent, file.name
        head = json.dumps({"lines": len(lines), "head": _digest_of(lines[-1])})
        begun: list[Path] = []
        try:
            # Killed processes leave files behind. Under this lock nobody else writes: remove them.
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
        # The new file is in place. An old head never causes a valid ledger to be refused.
        with suppress(OSError):
            os.replace(begun[1], _beside(file, ".head"))
        flush_folder(folder)


def spend_in(
    ledgers: Sequence[Ledger], spend: Spend, relation: Relation, unit: Unit
) -> list[Receipt]:
    """Record a spend in several ledgers or in none; see `Ledger.spend`."""
    with ExitStack() as held:
        # All processes lock ledgers in the same order, so that no two wait for each other.
        for file in sorted({ledger.file for ledger in ledgers}):
            held.enter_context(_Lock(file))
        written: list[tuple[Ledger, int, list[str]]] = []
        for ledger in ledgers:
            lines = ledger._lines()
            contents = ledger._checked(lines)
            made = replace(spend, when=_now())
            if contents.account != "composed":
                made = replace(made, composed=None)
            # The limit is checked again: another process may have recorded a cost since `check`.
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
    """Return the folder of named ledgers: ``DPVIZ_LEDGERS`` or the user's data folder."""
    given = os.environ.get("DPVIZ_LEDGERS")
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "dpviz" / "ledgers"


def ledger_named(name: str) -> Path:
    """Return the file of a named ledger, after creating the folder for ledgers.

    Raises
    ------
    InvalidSetting
        If a file of this name could lie outside the folder.
    LedgerError
        If the folder cannot be created, or would disappear at the next start of the machine or
        container, unless ``DPVIZ_LEDGERS_TEMPORARY`` is on.
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
            f"ledger {name} would lie {fleeting}. If a ledger is lost, its budget can be spent "
            "again. Set DPVIZ_LEDGERS to a permanent folder, such as a volume, or set "
            f"DPVIZ_LEDGERS_TEMPORARY=on; {_NOTHING}."
        )
    return folder / f"{name}.jsonl"


def _fleeting(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """Return a phrase for the kind of temporary folder, or None if the folder may be permanent."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # The file mountinfo exists only on Linux.
        return None
    there, kind = Path("/"), ""
    for line in lines:
        before, _, after = line.partition(" - ")
        # In mountinfo a space in a name is written as an octal code.
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4]))
        if folder.resolve().is_relative_to(point) and len(point.parts) >= len(there.parts):
            there, kind = point, after.split()[0]  # A later mount hides an earlier one.
    if kind in ("tmpfs", "ramfs"):
        return "in memory"
    if kind == "overlay" and there == Path("/"):
        return "inside the container, which can be deleted"
    return None


def ledger_names() -> list[str]:
    """Return the names of the named ledgers, the most recently written ledger first."""
    try:
        found = [(path.stat().st_mtime_ns, path.stem) for path in ledger_folder().glob("*.jsonl")]
    except OSError:
        return []
    known = [(when, name) for when, name in found if _NAME.fullmatch(name)]
    return [name for _, name in sorted(known, key=lambda one: (-one[0], one[1]))]


def ledger_at(word: str | Path) -> Ledger:
    """Return the ledger in a file, or the ledger of this name if there is no such file.

    The ledger need not exist yet.
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
        if not self._folder.is_dir():  # FileLock would create the folder if it is missing.
            raise LedgerError(
                f"ledger {self._name} cannot be written: the folder does not exist; {_NOTHING}."
            )
        try:
            self._lock.acquire(timeout=_WAIT_SECONDS, poll_interval=0.005)
        except Timeout:
            raise LedgerError(
                f"another process has locked ledger {self._name} for more than "
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
    # An empty ledger has used nothing. Otherwise its total would be the delta of the limit.
    if rho == 0 and failing == 0:
        return 0.0, 0.0
    left = limit.delta - failing
    return (epsilon_of_rho(rho, left) if left > 0 else math.inf), max(limit.delta, failing)


def composed_epsilon(spends: Sequence[Spend], delta: float) -> float:
    """Return the total epsilon of spends at a delta, by the tightest accounting known.

    The total composes all losses, or adds up the spends' own epsilons and deltas. The total is
    infinite if both are impossible.
    """
    if not spends:
        return 0.0
    found = math.inf
    # Epsilons add up if delta is at least the sum of all deltas, but not for a smaller delta.
    if math.fsum(spend.delta for spend in spends) <= delta * _COMPOSED_ROOM:
        found = math.fsum(spend.epsilon for spend in spends)
    done = [spend.composed for spend in spends if spend.composed is not None]
    # If the privacy loss of one spend is unknown, the losses cannot be composed together.
    if len(done) < len(spends):
        return found
    parts = tuple(part for one in done for part in one.parts)
    known = tuple(loss for one in done for loss in one.known)
    return min(found, Composed(parts, known).loss().epsilon(delta))


def _rho(spends: tuple[Spend, ...]) -> tuple[float, float]:
    """Return the total rho, and the probability that spends without a rho fail.

    A spend without a rho is treated as a pure loss that fails with probability delta.
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
    """Return whether a ledger of this name existed; a new ledger would restore the budget."""
    return _beside(file, ".head").exists() or _beside(file, ".releases").exists()


def _number(value: object) -> float:
    # In Python, True is a number and would count as 1, so it is refused.
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
    """Return whether a stated purpose differs from the ledger's purpose."""
    said, own = (" ".join(words.casefold().split()) for words in (stated, purpose))
    return bool(said) and said != own


def sha256(content: bytes) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    return hashlib.sha256(content).hexdigest()


def _line(found: dict[str, Any], before: str) -> str:
    return json.dumps({**found, "check": _check(found, before)}, allow_nan=False)


def _check(found: dict[str, Any], before: str) -> str:
    # Each line contains the digest of the line before, so a missing line changes all later ones.
    text = json.dumps({key: found[key] for key in sorted(found) if key != "check"})
    return hashlib.blake2b(f"{before}\n{text}".encode(), digest_size=32).hexdigest()


def _digest_of(line: str) -> str:
    found: str = json.loads(line)["check"]
    return found


def _write_new(path: Path, text: str, mode: int) -> None:
    # With O_EXCL nobody else's file is overwritten, and no link that they made is followed.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.chmod(path, mode)  # The mode is set after the umask, so that a group shares the ledger.
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())
