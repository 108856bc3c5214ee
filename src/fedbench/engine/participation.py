"""Who takes part in a round."""

from __future__ import annotations

from fedbench.engine.streams import stream
from fedbench.errors import UserError
from fedbench.specs import ParticipationSpec


def participants(spec: ParticipationSpec, n_clients: int, round_index: int, seed: int) -> list[int]:
    """Return the clients of a round in ascending order: all of them, or a uniform draw without replacement."""
    if spec.rule == "full":
        return list(range(n_clients))
    assert spec.clients is not None
    if spec.clients > n_clients:
        raise UserError(f"participation.clients is {spec.clients}, but there are only {n_clients} clients")
    chosen = stream(seed, "participation", round_index).choice(n_clients, spec.clients, replace=False)
    return sorted(int(client) for client in chosen)
