"""Hold the verdicts of a table against those that examples/verdicts.py recomputes from the runs, without fedbench:

python examples/check_table.py tables/localscgdam/table1.csv
"""

import sys

import pandas as pd
from studies import norm, study_of
from verdicts import against_print

WORDS = ("matches", "above published", "below published", "inconclusive")


def differences(path):
    """How many verdicts agree, the places where they do not, and how many numbers are made of others."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows = rows[rows["verdict"].isin(WORDS)]
    agree, differ, made = 0, [], 0
    for (study, table, scale), part in rows.groupby(["paper", "table", "scale"]):
        axes = ["dataset", *study_of(study)["settings"]]
        said = against_print(study, scale)
        for row in part.to_dict("records"):
            place = tuple(norm(row.get(axis, "")) for axis in axes)
            ours = said.get((table, place, row["method"], row["metric"]))
            made += ours is None
            agree += ours == row["verdict"]
            if ours not in (None, row["verdict"]):
                differ.append(
                    f"{scale} {place} {row['method']} {row['metric']}: {ours}, not {row['verdict']}"
                )
    return agree, differ, made


if __name__ == "__main__":
    agree, differ, made = differences(sys.argv[1])
    print(*differ, sep="\n", end="\n" * bool(differ))
    print(f"{agree} of {agree + len(differ)} verdicts agree", end="")
    print(f"; {made} numbers are made of others and were not recomputed" * bool(made))
    sys.exit(bool(differ))
