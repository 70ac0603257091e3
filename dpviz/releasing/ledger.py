"""A ledger: a file that says what has been spent on one table, and how much may be.

The file is text, one JSON object a line: a heading with the limit, then one line for each spend.
Every line carries a digest of itself and the line before, so a line that was changed, lost or
written by somebody who did not wait for the others is noticed. A spend is written before the data
is touched: a process that is killed leaves at most a spend without a release, never a release
without a spend. A new version of the file is written beside it, flushed to the disk and put in
place of the old one, whole or not at all, while a lock keeps every other process out.
"""

from __future__ import annotations

import glob
import hashlib
import json
import math
import os
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dpviz.errors import DpvizError, InvalidSetting
from dpviz.privacy.composition import epsilon_of_rho, rho_of_pure
from dpviz.values.problem import Budget

_FORMAT = 1
_WAIT_SECONDS = 60.0
_START = "dpviz ledger"
_UNFINISHED = ".unfinished"
# A limit reached to the last rounding is kept to; 1e-12 of it is no privacy.
_ROUNDING = 1e-12


class LedgerError(DpvizError):
    """A ledger cannot be read, or will not pay; the message says why in one sentence."""


@dataclass(frozen=True)
class Spend:
    """One line of a ledger.

    Attributes
    ----------
    when : str
        Date and time, UTC, ISO 8601.
    mechanism : str
        Text of the variant.
    epsilon, delta : float
        What is spent.
    rho : float or None
        The zCDP parameter, where the release has one.
    purpose : str
        What for: ``fit``, ``release``, or the user's own words.
    settings : str
        Digest of all settings of the release; empty if not given.
    """

    when: str
    mechanism: str
    epsilon: float
    delta: float
    rho: float | None = None
    purpose: str = ""
    settings: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the spend as it stands in the file."""
        return {
            "when": self.when,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "purpose": self.purpose,
            "settings": self.settings,
        }


@dataclass(frozen=True)
class Contents:
    """What a ledger says.

    Attributes
    ----------
    limit : Budget or None
        The most that may be spent; None for no limit.
    account : str
        ``basic`` adds epsilons and deltas; ``zcdp`` adds rhos and quotes epsilon at the limit's
        delta. Fixed when the ledger is made, so that nobody picks the kinder one afterwards.
    spends : tuple of Spend
    """

    limit: Budget | None
    account: str
    spends: tuple[Spend, ...]

    @property
    def total(self) -> tuple[float, float]:
        """Epsilon and delta of all spends together, by the ledger's account."""
        return _total(self.spends, self.account, self.limit)

    def to_json(self) -> dict[str, Any]:
        """Return the ledger as ``python -m dpviz ledger`` prints it."""
        epsilon, delta = self.total
        limit = self.limit
        return {
            "limit": limit and {"epsilon": limit.epsilon, "delta": limit.delta},
            "account": self.account,
            "total": {"epsilon": epsilon if math.isfinite(epsilon) else None, "delta": delta},
            "spends": [spend.to_json() for spend in self.spends],
        }


@dataclass(frozen=True)
class Ledger:
    """A ledger by its file; the object holds nothing else and may be copied freely.

    Attributes
    ----------
    path : Path
        The file. Beside it lies a lock, the same name with ``.lock``.
    """

    path: Path

    def create(self, limit: Budget | None, account: str = "basic") -> Contents:
        """Make an empty ledger.

        Raises
        ------
        LedgerError
            If the file is there already, or cannot be written.
        InvalidSetting
            If the account is not known, or a zcdp account has no limit with a delta.
        """
        if account not in ("basic", "zcdp"):
            raise InvalidSetting("account", "basic or zcdp", account, "--account")
        if account == "zcdp" and (limit is None or limit.delta == 0):
            raise InvalidSetting(
                "limit", "given with a delta above 0 for a zcdp account", "none", "--limit"
            )
        with self._locked():
            if self.path.exists():
                raise LedgerError(
                    f"ledger {self.path.name} is there already: its limit was set when it was made."
                )
            heading: dict[str, Any] = {
                "dpviz_ledger": _FORMAT,
                "limit": limit and [limit.epsilon, limit.delta],
                "account": account,
            }
            self._write([_line(heading, _START)])
        return Contents(limit, account, ())

    def read(self) -> Contents:
        """Return what the ledger says.

        Raises
        ------
        LedgerError
            If the file is not there, cannot be read or is damaged.
        """
        return self._parse(self._lines())

    def check(self, budget: Budget, rho: float | None = None) -> None:
        """Raise `LedgerError` if the ledger would not pay for this, without writing anything."""
        if self.path.exists():
            self._affordable(self.read(), Spend("", "", budget.epsilon, budget.delta, rho))

    def spend(
        self,
        mechanism: str,
        budget: Budget,
        *,
        rho: float | None = None,
        purpose: str = "",
        settings: str = "",
    ) -> Spend:
        """Write a spend down; call it before the data is touched.

        A ledger that is not there is made, without a limit.

        Parameters
        ----------
        mechanism : str
        budget : Budget
            What the release is proved to cost.
        rho : float, optional
        purpose, settings : str

        Returns
        -------
        Spend
            As written. It is on the disk when this returns.

        Raises
        ------
        LedgerError
            If the total would pass the limit, the file is damaged or cannot be written, or another
            process holds it for more than a minute. Nothing is then written.
        """
        made = Spend(
            datetime.now(UTC).isoformat(timespec="microseconds"),
            mechanism,
            budget.epsilon,
            budget.delta,
            rho,
            purpose,
            settings,
        )
        with self._locked():
            if self.path.exists():
                lines = self._lines()
                self._affordable(self._parse(lines), made)
            else:
                heading = {"dpviz_ledger": _FORMAT, "limit": None, "account": "basic"}
                lines = [_line(heading, _START)]
            self._write([*lines, _line(made.to_json(), _digest_of(lines[-1]))])
        return made

    def _affordable(self, contents: Contents, made: Spend) -> None:
        limit = contents.limit
        if limit is None:
            return
        epsilon, delta = _total((*contents.spends, made), contents.account, limit)
        room = 1 + _ROUNDING
        if epsilon > limit.epsilon * room or delta > limit.delta * room:
            spent_epsilon, spent_delta = contents.total
            raise LedgerError(
                f"ledger {self.path.name} refuses: epsilon {made.epsilon:.6g} and delta "
                f"{made.delta:.3g} on top of the {spent_epsilon:.6g} and {spent_delta:.3g} already "
                f"spent would pass its limit of {limit.epsilon:g} and {limit.delta:g}; nothing was "
                "spent."
            )

    def _locked(self) -> _Lock:
        return _Lock(self.path)

    def _lines(self) -> list[str]:
        try:
            text = self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise LedgerError(f"there is no ledger {self.path.name}.") from None
        except UnicodeDecodeError:
            raise self._damaged(1) from None
        except OSError as error:
            raise LedgerError(
                f"ledger {self.path.name} cannot be read: {error.strerror}."
            ) from None
        if not text.endswith("\n"):
            raise self._damaged(text.count("\n") + 1)
        return text.splitlines()

    def _parse(self, lines: list[str]) -> Contents:
        before, objects = _START, []
        for number, line in enumerate(lines, start=1):
            try:
                found = json.loads(line)
            except json.JSONDecodeError:
                raise self._damaged(number) from None
            if not isinstance(found, dict) or found.get("check") != _check(found, before):
                raise self._damaged(number)
            objects.append(found)
            before = found["check"]
        try:
            heading = objects[0]
            if heading["dpviz_ledger"] != _FORMAT:
                raise LedgerError(
                    f"ledger {self.path.name} is of format {heading['dpviz_ledger']}; this version "
                    f"reads format {_FORMAT}."
                )
            limit = None if heading["limit"] is None else Budget(*heading["limit"])
            spends = tuple(
                Spend(**{key: value for key, value in found.items() if key != "check"})
                for found in objects[1:]
            )
            return Contents(limit, heading["account"], spends)
        except (KeyError, TypeError, IndexError):
            raise self._damaged(1) from None

    def _damaged(self, line: int) -> LedgerError:
        return LedgerError(
            f"ledger {self.path.name} is damaged or was written without its lock, from line {line} "
            "on: restore it from a copy; nothing was spent."
        )

    def _write(self, lines: list[str]) -> None:
        folder, name = self.path.parent, self.path.name
        temporary = folder / f".{name}.{os.getpid()}{_UNFINISHED}"
        try:
            # What a process left that was killed here; nobody else writes, the lock is ours.
            for left in folder.glob(f".{glob.escape(name)}.*{_UNFINISHED}"):
                left.unlink(missing_ok=True)
            mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else 0o666
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "wb") as file:
                file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
            _flush_folder(folder)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise LedgerError(
                f"ledger {name} cannot be written: {error.strerror}; nothing was spent."
            ) from None


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
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}", name):
        raise InvalidSetting("ledger", "a name of letters, digits and dashes", name or "nothing")
    folder = ledger_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"ledger {name} cannot be written: {error.strerror}; nothing was spent."
        ) from None
    return folder / f"{name}.jsonl"


class _Lock:
    """The lock of one ledger, held while its file is read and written."""

    def __init__(self, path: Path) -> None:
        self._name, self._folder = path.name, path.parent
        self._lock = FileLock(f"{path}.lock")

    def __enter__(self) -> None:
        if not self._folder.is_dir():  # the lock would make it
            raise LedgerError(
                f"ledger {self._name} cannot be written: there is no such folder; nothing was "
                "spent."
            )
        try:
            self._lock.acquire(timeout=_WAIT_SECONDS, poll_interval=0.005)
        except Timeout:
            raise LedgerError(
                f"ledger {self._name} is held by another process for more than "
                f"{_WAIT_SECONDS:.0f} seconds; nothing was spent."
            ) from None
        except OSError as error:
            raise LedgerError(
                f"ledger {self._name} cannot be written: {error.strerror}; nothing was spent."
            ) from None

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _total(spends: tuple[Spend, ...], account: str, limit: Budget | None) -> tuple[float, float]:
    if account == "basic" or limit is None:
        return (
            math.fsum(spend.epsilon for spend in spends),
            math.fsum(spend.delta for spend in spends),
        )
    # A spend without a rho is taken as its pure part, after a failure of probability delta.
    rho = math.fsum(
        rho_of_pure(spend.epsilon) if spend.rho is None else spend.rho for spend in spends
    )
    failing = math.fsum(spend.delta for spend in spends if spend.rho is None)
    if rho == 0 and failing == 0:
        return 0.0, 0.0
    left = limit.delta - failing
    return (epsilon_of_rho(rho, left) if left > 0 else math.inf), max(limit.delta, failing)


def _line(found: dict[str, Any], before: str) -> str:
    return json.dumps({**found, "check": _check(found, before)}, allow_nan=False)


def _check(found: dict[str, Any], before: str) -> str:
    text = json.dumps({key: found[key] for key in sorted(found) if key != "check"})
    return hashlib.blake2b(f"{before}\n{text}".encode(), digest_size=16).hexdigest()


def _digest_of(line: str) -> str:
    found: str = json.loads(line)["check"]
    return found


def _flush_folder(folder: Path) -> None:
    """Make the new name durable, where the system can (not on Windows)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
