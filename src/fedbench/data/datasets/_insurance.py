"""Insurance: who bills Medicare Part B and is excluded for fraud; CMS's file by provider and the OIG's list (cycp)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

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
NPI, STATE, TYPE = "rndrng_npi", "rndrng_prvdr_state_abrvtn", "rndrng_prvdr_type"
NUMBERS = re.compile(r"(drug_|med_)?tot_|bene_")
SUPPRESSED = ["*", "#", ""]


@dataclass(frozen=True, kw_only=True)
class Insurance(Dataset):
    """A row is a provider in a year; positive is one whose NPI is on the list of excluded individuals and entities.

    Numbers (totals, beneficiaries, chronic conditions) become log(1 + number), less the training part's mean, over its
    standard deviation; what is suppressed lies at the mean. Provider types are one-hot. The paper names no features:
    these are ours, of the edition in which CMS publishes all years since 2024, with 25 chronic conditions.

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
        return (*self.train_years, self.validation_year, self.test_year)

    def downloads(self) -> tuple[Download, ...]:
        """The list; the files of the years have names of their own (:meth:`sources`)."""
        return (Download(LIST),)

    def sources(self, folder: Path) -> list[Path]:
        return [folder / LIST, *(path for year in self.years for path in _files(folder, year))]

    def present(self, folder: Path) -> bool:
        return (folder / LIST).is_file() and all(_files(folder, year) for year in self.years)

    def prepare(self, raw_dir: Path) -> Arrays:
        excluded = _excluded(raw_dir / LIST)
        read = {year: _read(self._file(raw_dir, year), excluded) for year in self.years}
        first = read[self.years[0]]
        for year, table in read.items():
            if odd := sorted({*table} ^ {*first}):
                raise UserError(
                    f"{self._file(raw_dir, year).name} and that of {self.years[0]} have different columns"
                    f" ({', '.join(odd[:3])}, ...): fetch all years in the same edition."
                )
        years = {year: table[table[STATE].isin(self.states)] for year, table in read.items()}
        train = pd.concat([years[year] for year in self.train_years])
        both, test = pd.concat([train, years[self.validation_year]]), years[self.test_year]
        state, outside = pd.Index(self.states), sum(map(len, read.values())) - len(both) - len(test)
        notes = (
            f"{len(_numbers(first))} numbers, {train[TYPE].nunique()} provider types",
            f"{outside:,} rows outside the {len(self.states)} states dropped",
        )
        x_train, x_test = _encoded(train, both, test)
        labels = [part["label"].to_numpy(np.int64) for part in (both, test)]
        held = np.repeat([False, True], [len(train), len(both) - len(train)])
        group = state.get_indexer(pd.Index(both[STATE])).astype(np.int64)
        return Arrays(x_train, labels[0], x_test, labels[1], group, held_train=held, notes=notes)

    def _file(self, folder: Path, year: int) -> Path:
        files = _files(folder, year)
        if len(files) != 1:
            called = f"MUP_PHY_R24_P05_V10_D{year % 100}_Prov.csv"
            raise UserError(
                f"{folder} has {len(files)} files of {year}, not one, called like {called}. {self.cure(folder)}"
            )
        return files[0]


def _files(folder: Path, year: int) -> list[Path]:
    return sorted(folder.glob(f"*_D{year % 100:02}_Prov.csv"))


def _numbers(table: pd.DataFrame) -> list[str]:
    return sorted(name for name in map(str, table) if NUMBERS.match(name))


def _read(path: Path, excluded: np.ndarray) -> pd.DataFrame:
    """Read a year: numbers, nan where they are suppressed, each provider's type, state and label."""
    names = {
        name: name.strip().lower() for name in map(str, pd.read_csv(path, nrows=0, encoding="utf-8-sig"))
    }
    if lacking := [name for name in (NPI, STATE, TYPE) if name not in names.values()]:
        raise UserError(f"{path} has no column {', '.join(lacking)}: it is not a file by provider of CMS.")
    text = {name: str for name, called in names.items() if called in (NPI, STATE, TYPE)}
    taken = [name for name, called in names.items() if name in text or NUMBERS.match(called)]
    table: pd.DataFrame = pd.read_csv(
        path, usecols=taken, dtype=text, keep_default_na=False, na_values=SUPPRESSED, low_memory=False,
        encoding="utf-8-sig", encoding_errors="replace",
    ).rename(columns=names)  # fmt: skip
    for name in _numbers(table):
        cells = (
            table[name] if pd.api.types.is_numeric_dtype(table[name]) else table[name].str.replace(",", "")
        )
        values = pd.to_numeric(cells, errors="coerce")
        bad = (values.isna() & table[name].notna()) | (values < 0)
        if bad.any():
            told = table[name][bad].iloc[0]
            raise UserError(f"{path}: column {name} holds {told!r}, which is not a number of 0 or more.")
        table[name] = values.astype(np.float32)
    for name in (TYPE, STATE):
        table[name] = table[name].fillna("unknown").str.strip()
    table[STATE] = table[STATE].str.upper()
    return table.assign(label=np.isin(_npi(table.pop(NPI), path), excluded))


def _npi(column: pd.Series[str], source: Path) -> np.ndarray:
    """Return NPIs as whole numbers."""
    text = column.fillna("").str.strip()
    bad = ~text.str.fullmatch(r"\d{10}")
    if bad.any():
        raise UserError(f"{source}: {text[bad].iloc[0]!r} is not an NPI, which has 10 digits.")
    return text.to_numpy(np.int64)


def _excluded(path: Path) -> np.ndarray:
    """Read who is excluded for what counts here; most entries are older than the NPI and have none."""
    table = pd.read_csv(
        path, dtype=str, keep_default_na=False, encoding="utf-8-sig", encoding_errors="replace"
    )
    table.columns = pd.Index([name.strip().upper() for name in table.columns])
    if lacking := [name for name in ("NPI", "EXCLTYPE") if name not in table]:
        raise UserError(f"{path} has no column {', '.join(lacking)}: it is not the list of exclusions.")
    counts = table["EXCLTYPE"].str.strip().str.lower().isin(EXCLUSIONS)
    numbers = _npi(table["NPI"][counts], path)
    return numbers[numbers > 0]


def _encoded(train: pd.DataFrame, *parts: pd.DataFrame) -> list[np.ndarray]:
    """Return features [n, F] float32 of parts by what training rows are like; a type that these lack is none."""
    names, kinds = _numbers(train), np.unique(train[TYPE].to_numpy(str))
    logs = np.log1p(train[names].to_numpy())
    logs[:, np.isnan(logs).all(0)] = 0
    mean, spread = np.nanmean(logs, 0, dtype=np.float64), np.nanstd(logs, 0, dtype=np.float64)
    encoded = []
    for part in parts:
        numbers = (np.log1p(part[names].to_numpy()) - mean) / np.where(spread > 0, spread, 1.0)
        of_kind = part[TYPE].to_numpy(str)[:, None] == kinds
        encoded.append(np.hstack([np.nan_to_num(numbers, nan=0.0), of_kind], dtype=np.float32))
    return encoded
