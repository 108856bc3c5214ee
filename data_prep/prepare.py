"""Fetch, verify and prepare one dataset: ``prepare.py DATASET --data-dir DIR [--mirror M]``."""

from __future__ import annotations

import argparse
import logging
import sys

from fedbench.data.prepared import prepare
from fedbench.errors import UserError, explain


def main() -> int:
    """Run the program; exit status 2 and one line on a mistake of the user."""
    parser = argparse.ArgumentParser(description="Fetch, verify and prepare one dataset.")
    parser.add_argument("dataset", help="its name, e.g. fashionmnist")
    parser.add_argument("--data-dir", default="data", help="where raw and prepared files are kept")
    parser.add_argument(
        "--mirror", default="", help="folder or address that is asked before the official one"
    )
    parser.add_argument("--force", action="store_true", help="prepare again what is prepared already")
    parser.add_argument("--cores", type=int, default=1, help="processes that decode pictures")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        mirror = arguments.mirror or None
        print(prepare(arguments.dataset, arguments.data_dir, mirror, arguments.force, arguments.cores))
    except (UserError, OSError) as error:
        print(f"error: {explain(error)}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
