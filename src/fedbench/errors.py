"""Errors a user can mend: the message names the thing and the cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user gave is wrong. The command line prints the message alone and exits with status 2."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Build the error for a name nobody knows, with the nearest match and the list of known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(names) or 'none'}.")
