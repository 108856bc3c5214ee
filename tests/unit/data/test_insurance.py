"""The files of CMS and of the OIG, made small, and what can be wrong with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedbench.data import datasets
from fedbench.data.datasets._insurance import Insurance
from fedbench.errors import UserError

YEARS = range(2017, 2023)
STATES = ("AL", "CA", "WY")
CONDITIONS = ["Bene_CC_BH_Alcohol_Drug_V1_Pct", "Bene_CC_PH_Cancer6_V2_Pct"]
Change = Callable[[pd.DataFrame], Any]


def year(number: int) -> pd.DataFrame:
    """Twelve providers in three states, a territory and nowhere; every fourth NPI is excluded later."""
    rng = np.random.default_rng(number)
    n = 12
    return pd.DataFrame(
        {
            "Rndrng_NPI": [1_000_000_000 + k for k in range(n)],
            "Rndrng_Prvdr_Last_Org_Name": [f"Name {k}" for k in range(n)],
            "Rndrng_Prvdr_State_Abrvtn": [*STATES, "CA", "PR", "DC", "WY", "CA", "AL", "CA", "WY", "CA"],
            "Rndrng_Prvdr_Type": ["Cardiology", "Podiatry", "Cardiology"] * (n // 3),
            "Drug_Sprsn_Ind": ["*"] * n,
            "Tot_Benes": rng.integers(11, 4000, n).astype(str),
            "Tot_Sbmtd_Chrg": [f"{value:,.2f}" for value in rng.uniform(10, 1e6, n)],
            "Drug_Tot_Srvcs": ["", "*", "#", *map(str, rng.integers(0, 9, n - 3))],
            "Bene_Avg_Age": rng.integers(60, 90, n).astype(str),
            **{name: [f"{value:.2f}" for value in rng.random(n)] for name in CONDITIONS},
        }
    )


def excluded() -> pd.DataFrame:
    """NPIs 0, 4 and 8 for reasons that count, 9 for one that does not, and entries without an NPI."""
    entries = {10**9: "1128a1", 10**9 + 4: "1128b7", 10**9 + 8: "1128A3", 10**9 + 9: "1128b14", 0: "1128a2"}
    rows = [{"LASTNAME": "X", "NPI": f"{npi:010d}", "EXCLTYPE": kind} for npi, kind in entries.items()]
    return pd.DataFrame([*rows, rows[-1]])


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write the files; ``change`` is applied to the table of 2019, ``leie`` to the list."""

    def make(change: Change = lambda t: t, leie: Change = lambda t: t, upper: bool = False) -> Path:
        for number in YEARS:
            table = change(year(number)) if number == 2019 else year(number)
            if upper:
                table.columns = pd.Index([name.upper() for name in table.columns])
            path = tmp_path / f"MUP_PHY_R24_P05_V10_D{number % 100}_Prov.csv"
            table.to_csv(path, index=False, encoding="utf-8-sig")
        leie(excluded()).to_csv(tmp_path / "UPDATED.csv", index=False)
        return tmp_path

    return make


@pytest.fixture
def small() -> Insurance:
    """The dataset with the states of the small files."""
    return dataclasses.replace(datasets.get("insurance"), states=STATES)


@pytest.mark.parametrize("upper", [False, True])
def test_numbers_types_labels_and_states(small: Insurance, folder: Callable[..., Path], upper: bool) -> None:
    read = small.prepare(folder(upper=upper))
    assert read.x_train.shape == (50, 6 + 2) and read.x_test.shape == (10, 6 + 2)
    assert read.held_train is not None and read.held_train.tolist() == [False] * 40 + [True] * 10
    assert read.group_train is not None and read.group_train[:5].tolist() == [0, 1, 2, 1, 2]
    of_a_year = [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]  # rows 4 and 5 are outside the states; 9 is excluded for less
    assert read.y_train.tolist() == of_a_year * 5 and read.y_test.tolist() == of_a_year
    train = read.x_train[:40]
    totals = ["Tot_Benes", "Tot_Sbmtd_Chrg", "Drug_Tot_Srvcs", "Bene_Avg_Age"]
    order = sorted([*totals, *CONDITIONS], key=str.lower)
    raw = pd.concat([year(number) for number in YEARS[:4]])
    raw = raw[raw["Rndrng_Prvdr_State_Abrvtn"].isin(STATES)][order]
    for at, name in enumerate(order):
        values = np.log1p(pd.to_numeric(raw[name].str.replace(",", ""), errors="coerce").to_numpy())
        expected = np.nan_to_num((values - np.nanmean(values)) / np.nanstd(values))
        np.testing.assert_allclose(train[:, at], expected, atol=1e-5)
    np.testing.assert_array_equal(train[:, 6:8].sum(1), 1)
    assert train[0, 6:].tolist() == [1, 0]  # Cardiology
    assert "12 rows outside the 3 states" in read.notes[1]


def test_a_type_that_training_does_not_know_is_none(small: Insurance, folder: Callable[..., Path]) -> None:
    path = folder() / "MUP_PHY_R24_P05_V10_D22_Prov.csv"
    path.write_text(path.read_text("utf-8-sig").replace("Podiatry", "Astrology"))
    read = small.prepare(path.parent)
    assert read.x_test[:, 6:8].sum() < 10 and set(read.x_test[:, 6:8].sum(1)) == {0, 1}


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        ("change", lambda t: t.drop(columns="Rndrng_NPI"), r"D19_Prov.csv has no column rndrng_npi"),
        ("change", lambda t: t.drop(columns="Tot_Benes"), r"different columns \(tot_benes.*same edition"),
        ("change", lambda t: t.assign(Rndrng_NPI=123), r"'123' is not an NPI, which has 10 digits"),
        ("change", lambda t: t.assign(Tot_Benes="many"), r"column tot_benes holds 'many'"),
        ("change", lambda t: t.assign(Tot_Benes="-3"), r"column tot_benes holds .*-3"),
        ("leie", lambda t: t.drop(columns="EXCLTYPE"), "no column EXCLTYPE: it is not the list of"),
        ("leie", lambda t: t.assign(NPI="12345"), "'12345' is not an NPI"),
    ],
)
def test_files_that_do_not_fit_are_named(
    small: Insurance, folder: Callable[..., Path], table: str, change: Change, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        small.prepare(folder(**{table: change}))


def test_a_year_that_is_missing_or_there_twice(small: Insurance, folder: Callable[..., Path]) -> None:
    year_2020 = folder() / "MUP_PHY_R24_P05_V10_D20_Prov.csv"
    copy = year_2020.rename(year_2020.with_name("MUP_PHY_R25_P05_V20_D20_Prov.csv"))
    small.prepare(copy.parent)
    year_2020.write_bytes(copy.read_bytes())
    with pytest.raises(UserError, match="has 2 files of 2020, not one"):
        small.prepare(copy.parent)
    for path in (copy, year_2020):
        path.unlink()
    with pytest.raises(UserError, match=r"has 0 files of 2020, .*D20_Prov.csv.*data.cms.gov"):
        small.prepare(copy.parent)
