"""Insurance: who bills Medicare Part B and is excluded for fraud; CMS's file by provider and the OIG's list (cycp)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fedbench.data.dataset import Arrays, Dataset
from fedbench.data.download import Download
from fedbench.errors import UserError

STATES = (
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS", "KY",
    "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND",
    "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY",
)  # fmt: skip
"""Clients, in this order. The District of Columbia, territories and addresses abroad are none."""
EXCLUSIONS = ("1128a1", "1128a2", "1128a3", "1128a4", "1128b7", "1128c3gi", "1128c3gii")
"""Mandatory exclusions, and the permissive one for fraud and kickbacks."""
LIST = "UPDATED.csv"
NPI, STATE, TYPE, GENDER = "rndrng_npi", "rndrng_prvdr_state_abrvtn", "rndrng_prvdr_type", "rndrng_prvdr_gndr"
NUMBERS = re.compile(r"(drug_|med_)?tot_|bene_")
SUPPRESSED = ["*", "#", ""]
_YEAR = re.compile(r"_D(\d\d)_Prov|(?<!\d)(20\d\d)(?!\d)", re.IGNORECASE)
_CHUNK = 200_000  # rows read at a time


class Year(NamedTuple):
    """One year's providers: numbers [n, F] (nan where suppressed), their type, gender, state and label [n]."""

    numbers: np.ndarray
    kind: np.ndarray
    gender: np.ndarray
    state: np.ndarray
    label: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Insurance(Dataset):
    """A row is a provider in a year; positive is one whose NPI is on the list of excluded individuals and entities.

    Numbers (totals, beneficiaries, chronic conditions) become log(1 + number), less the training part's mean, over its
    standard deviation; what is suppressed lies at the mean. Provider type and, where the files have it, gender are
    one-hot. The paper names no features: these are ours. CMS changed its columns once; the years must be of one kind.

    Attributes:
        train_years, validation_year, test_year: which year is what.
        states: groups of the samples, one client each.
    """

    train_years: tuple[int, ...] = (2017, 2018, 2019, 2020)
    validation_year: int = 2021
    test_year: int = 2022
    states: tuple[str, ...] = STATES

    @property
    def years(self) -> tuple[int, ...]:
        """All years, the training ones first."""
        return (*self.train_years, self.validation_year, self.test_year)

    def downloads(self) -> tuple[Download, ...]:
        """The list; the files of the years have names of their own (:meth:`files`)."""
        return (Download(LIST),)

    def sources(self, folder: Path) -> list[Path]:
        """The list, and the files of the years that lie there."""
        return [folder / LIST, *(path for _, path in _files(folder))]

    def present(self, folder: Path) -> bool:
        """Say whether the list and a file of every year lie in ``folder``."""
        return (folder / LIST).is_file() and {*self.years} <= {year for year, _ in _files(folder)}

    def prepare(self, raw_dir: Path) -> Arrays:
        """Read all years in one layout of columns, label and encode them."""
        files = self._one_file_a_year(raw_dir)
        columns = _same_columns([files[year] for year in self.years])
        excluded = _excluded(raw_dir / LIST)
        dropped: Counter[str] = Counter()
        years = {year: self._read(files[year], columns, excluded, dropped) for year in self.years}
        train = _concatenated([years[year] for year in self.train_years])
        self._check(train, years)
        encode = _Encoder(train)
        held = np.repeat([False, True], [len(train.label), len(years[self.validation_year].label)])
        both = _concatenated([train, years[self.validation_year]])
        notes = [
            f"{len(columns)} numbers, {len(encode.kinds)} provider types, gender: {bool(encode.genders)}"
        ]
        if dropped:
            told = ", ".join(f"{name} {n:,}" for name, n in sorted(dropped.items()))
            notes.append(f"rows outside the {len(self.states)} states dropped: {told}")
        return Arrays(
            x_train=encode(both),
            y_train=both.label,
            x_test=encode(years[self.test_year]),
            y_test=years[self.test_year].label,
            group_train=both.state,
            held_train=held,
            notes=tuple(notes),
        )

    def _one_file_a_year(self, folder: Path) -> dict[int, Path]:
        by_year: dict[int, Path] = {}
        for year, path in _files(folder):
            if year in by_year and year in self.years:
                raise UserError(f"{folder} has two files of {year}: {by_year[year].name} and {path.name}.")
            by_year[year] = path
        if lacking := [year for year in self.years if year not in by_year]:
            raise UserError(
                f"{folder} has no file of {', '.join(map(str, lacking))}: CMS calls it like"
                f" MUP_PHY_R24_P05_V10_D{lacking[0] % 100}_Prov.csv. {self.cure(folder)}"
            )
        return by_year

    def _read(self, path: Path, columns: Sequence[str], excluded: set[int], dropped: Counter[str]) -> Year:
        """Read a year in portions, without providers outside the states."""
        place = {name: at for at, name in enumerate(self.states)}
        parts = []
        for table in _tables(path):
            where = table[STATE].fillna("unknown").str.strip().str.upper()
            inside = where.isin(place)
            dropped.update(where[~inside].tolist())
            table, where = table[inside], where[inside]
            npi = _numbers_of_providers(table[NPI], path)
            numbers = table[list(columns)].apply(_number, source=path).to_numpy(np.float32)
            gender = table[GENDER].fillna("").to_numpy(str) if GENDER in table else np.full(len(table), "")
            parts.append(
                Year(
                    numbers,
                    table[TYPE].fillna("unknown").str.strip().to_numpy(str),
                    gender,
                    where.map(place).to_numpy(np.int64),
                    np.isin(npi, list(excluded)).astype(np.int64),
                )
            )
        return _concatenated(parts)

    def _check(self, train: Year, years: dict[int, Year]) -> None:
        empty = [name for at, name in enumerate(self.states) if at not in train.state]
        if empty:
            raise UserError(f"{self.name}: no training row of {', '.join(empty)}; each state is a client.")
        for what, part in (
            ("training years", train),
            *((str(year), years[year]) for year in self.years[-2:]),
        ):
            if not part.label.any():
                raise UserError(
                    f"{self.name}: no provider of {what} is on the list of exclusions: is {LIST} whole?"
                )


class _Encoder:
    """Turns rows into features by what the training rows are like."""

    def __init__(self, train: Year) -> None:
        numbers = np.log1p(train.numbers)
        known = ~np.isnan(numbers).all(0)
        self._mean = np.where(known, np.nanmean(np.where(known, numbers, 0.0), 0, dtype=np.float64), 0.0)
        spread = np.nanstd(np.where(known, numbers, 0.0), 0, dtype=np.float64)
        self._std = np.where(spread > 0, spread, 1.0)
        self.kinds = np.unique(train.kind)
        self.genders = [name for name in ("F", "M") if name in train.gender]

    def __call__(self, rows: Year) -> np.ndarray:
        """Return features [n, F] float32; a provider type that training does not know is none."""
        n, width = rows.numbers.shape
        x = np.zeros((n, width + len(self.kinds) + len(self.genders)), dtype=np.float32)
        x[:, :width] = np.nan_to_num((np.log1p(rows.numbers) - self._mean) / self._std, nan=0.0)
        place = np.searchsorted(self.kinds, rows.kind).clip(max=len(self.kinds) - 1)
        known = np.flatnonzero(self.kinds[place] == rows.kind)
        x[known, width + place[known]] = 1
        for at, name in enumerate(self.genders):
            x[:, width + len(self.kinds) + at] = rows.gender == name
        return x


def _files(folder: Path) -> list[tuple[int, Path]]:
    """List the CSV files whose names tell a year."""
    by_year = []
    for path in sorted(folder.glob("*.csv")):
        match = _YEAR.search(path.name) if path.name != LIST else None
        if match:
            by_year.append((2000 + int(match[1]) if match[1] else int(match[2]), path))
    return by_year


def _header(path: Path) -> list[str]:
    return [name.strip().lower() for name in pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns]


def _same_columns(paths: Sequence[Path]) -> list[str]:
    """Return the columns of numbers, which all years must share with those that tell who it is."""
    headers = {path: _header(path) for path in paths}
    for path, header in headers.items():
        if lacking := [name for name in (NPI, STATE, TYPE) if name not in header]:
            raise UserError(
                f"{path} has no column {', '.join(lacking)}: it is not a file by provider of CMS."
            )
    kinds = {
        path: {name for name in header if NUMBERS.match(name) or name == GENDER}
        for path, header in headers.items()
    }
    first = paths[0]
    for path in paths[1:]:
        if odd := sorted(kinds[path] ^ kinds[first]):
            raise UserError(
                f"{path.name} and {first.name} have different columns ({', '.join(odd[:3])}, ...): CMS changed them"
                " once, so fetch all years in the same edition."
            )
    if not (numbers := sorted(kinds[first] - {GENDER})):
        raise UserError(f"{first} has no columns of numbers such as Tot_Srvcs or Bene_Avg_Age.")
    return numbers


def _tables(path: Path) -> Iterator[pd.DataFrame]:
    """Read a CSV as text in portions, names in lower case."""
    options = {"dtype": str, "keep_default_na": False, "na_values": SUPPRESSED}
    with pd.read_csv(
        path, chunksize=_CHUNK, encoding="utf-8-sig", encoding_errors="replace", **options
    ) as reader:  # type: ignore[call-overload]
        for table in reader:
            table.columns = [name.strip().lower() for name in table.columns]
            yield table


def _number(column: pd.Series[str], source: Path) -> pd.Series[float]:
    """Turn numbers such as ``1,234.5`` into floats; nan where suppressed."""
    values = pd.to_numeric(column.str.replace(",", ""), errors="coerce")
    bad = values.isna() & column.notna()
    if bad.any() or (values < 0).any():
        shown = column[bad].iloc[0] if bad.any() else values.min()
        raise UserError(
            f"{source}: column {column.name} holds {shown!r}, which is not a number of 0 or more."
        )
    return values


def _numbers_of_providers(column: pd.Series[str], source: Path) -> np.ndarray:
    """Return NPIs as whole numbers."""
    text = column.fillna("").str.strip()
    bad = ~text.str.fullmatch(r"\d{10}")
    if bad.any():
        raise UserError(f"{source}: {text[bad].iloc[0]!r} is not an NPI, which has 10 digits.")
    return text.to_numpy(np.int64)


def _excluded(path: Path) -> set[int]:
    """Read who is excluded for what counts here; most entries are older than the NPI and have none."""
    table = pd.read_csv(
        path, dtype=str, keep_default_na=False, encoding="utf-8-sig", encoding_errors="replace"
    )
    table.columns = pd.Index([name.strip().upper() for name in table.columns])
    if lacking := [name for name in ("NPI", "EXCLTYPE") if name not in table]:
        raise UserError(f"{path} has no column {', '.join(lacking)}: it is not the list of exclusions.")
    counts = table["EXCLTYPE"].str.strip().str.lower().isin(EXCLUSIONS)
    numbers = _numbers_of_providers(table["NPI"][counts], path)
    return {int(number) for number in numbers if number}


def _concatenated(parts: Sequence[Year]) -> Year:
    return Year(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


dataset = Insurance(
    name="insurance",
    title="Insurance",
    classes=("not excluded", "excluded"),
    shape=(),  # as many features as the edition of the files has numbers and provider types
    licence="public domain (U.S. government works)",
    source="https://data.cms.gov (Medicare Physician & Other Practitioners, by Provider), https://oig.hhs.gov (LEIE)",
    account=(
        "It has no lasting addresses: download the years 2017 to 2022 of 'Medicare Physician & Other Practitioners - by"
        " Provider' from https://data.cms.gov (MUP_PHY_..._D17_Prov.csv and so on, of one edition) and the list of"
        " exclusions UPDATED.csv from https://oig.hhs.gov/exclusions."
    ),
)
