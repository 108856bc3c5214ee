"""Holds an RO-Crate against its profiles, for an environment with roc-validator and rocrate; nothing is downloaded.

python validate_crate.py FOLDER [PROFILE...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import rocrate
from rocrate.rocrate import ROCrate
from rocrate_validator import models, services
from rocrate_validator.utils.http import HttpRequester

PROFILES = ("ro-crate-1.1", "workflow-ro-crate-1.0", "process-run-crate-0.5", "workflow-run-crate-0.5")
CONTEXT = Path(rocrate.__file__).parent / "data/ro-crate.jsonld"
"""That of RO-Crate 1.1, as rocrate 0.15 brings it."""


class _Context:
    """The answer of the server that has the context."""

    status_code, ok = 200, True
    headers = {"Content-Type": "application/ld+json"}
    text = CONTEXT.read_text()
    content = text.encode()

    def json(self) -> Any:
        return json.loads(self.text)


def _get(_: HttpRequester, address: str, **__: Any) -> _Context:
    if address != "https://w3id.org/ro/crate/1.1/context":
        raise OSError(f"{address} is not to be asked for")
    return _Context()


def main(folder: str, *profiles: str) -> int:
    """Print what is wrong; the status says whether something is."""
    type(HttpRequester()).get = _get  # type: ignore[method-assign]
    print(f"rocrate reads {len(ROCrate(folder).get_entities())} entities")
    wrong = 0
    for profile in profiles or PROFILES:
        asked = services.ValidationSettings(
            rocrate_uri=folder,
            profile_identifier=profile,
            requirement_severity=models.Severity.REQUIRED,
            no_cache=True,
        )
        issues = services.validate(asked).get_issues()
        print(f"{profile}: {len(issues)} issues", *(issue.message for issue in issues), sep="\n  ")
        wrong += len(issues)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
