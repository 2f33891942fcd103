"""One recording, many answers: recordings of the same step at several sizes become one trace whose sizes are polynomials.

The size of an allocation is affine in the batch and, in most networks, at most quadratic in the length. Recordings at
enough sizes fix the coefficients exactly; one more, at a size that was not used, checks them. docs/contract.md, section 5.
"""
from __future__ import annotations

import gzip
import json
from fractions import Fraction
from typing import Any, Optional

# Exponents of (batch_size,), (sequence_length,) or both.
TERMS = {1: {"batch_size": [(0,), (1,)], "sequence_length": [(0,), (1,), (2,)]},
         2: [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]}
BLOCK = 512        # bytes to which PyTorch's allocator rounds
TOLERANCE = 0.005  # of the allocated peak, at the size that checks
# What an event keeps at every size; ids number the allocations in order and agree if these do.
SAME = ("op", "id", "name", "module", "tag", "phase", "iteration", "line")


class NotVariable(Exception):
    """The recordings cannot be joined; the text says why, in one sentence."""


def terms_of(names: list[str]) -> list[tuple[int, ...]]:
    return TERMS[1][names[0]] if len(names) == 1 else TERMS[2]


def sizes_to_record(now: dict[str, int]) -> tuple[list[dict[str, int]], dict[str, int]]:
    """The sizes that fix all coefficients, the present one first, and one that checks them."""
    batches = [now["batch_size"], 2 * now["batch_size"]] if "batch_size" in now else []
    length = now.get("sequence_length", 0)
    lengths = [length, 2 * length, 3 * length] if length else []
    if not lengths:
        return [{"batch_size": b} for b in batches], {"batch_size": 3 * batches[0]}
    if not batches:
        return [{"sequence_length": n} for n in lengths], {"sequence_length": 4 * length}
    return [{"batch_size": b, "sequence_length": n} for b in batches for n in lengths], {"batch_size": 3 * batches[0], "sequence_length": 4 * length}


def lines_of(path: str) -> list[dict[str, Any]]:
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _integers(event: dict[str, Any]) -> dict[str, int]:
    """What may depend on a size, by JSON pointer."""
    found = {"/bytes": event["bytes"]} if "bytes" in event else {}
    for call in ("conv", "fft", "attention"):
        for key, value in event.get(call, {}).items():
            if isinstance(value, bool):
                continue
            if isinstance(value, int):
                found[f"/{call}/{key}"] = value
            elif isinstance(value, list):
                found.update({f"/{call}/{key}/{i}": v for i, v in enumerate(value) if isinstance(v, int)})
    return found


def _inverse(rows: list[list[int]]) -> list[list[Fraction]]:
    n = len(rows)
    m = [[Fraction(v) for v in row] + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(rows)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if m[k][i])
        m[i], m[pivot] = m[pivot], m[i]
        m[i] = [v / m[i][i] for v in m[i]]
        for k in range(n):
            if k != i and m[k][i]:
                m[k] = [a - m[k][i] * b for a, b in zip(m[k], m[i])]
    return [row[n:] for row in m]


def _power(sizes: list[int], exponents: tuple[int, ...]) -> int:
    value = 1
    for size, exponent in zip(sizes, exponents):
        value *= size**exponent
    return value


def _place(event: dict[str, Any]) -> str:
    return " ".join(str(event[key]) for key in ("name", "line") if event.get(key)) or event["op"]


def _require_same(recordings: list[list[dict[str, Any]]], at: list[str]) -> None:
    for other, text in zip(recordings[1:], at[1:]):
        for i, (a, b) in enumerate(zip(recordings[0][1:], other[1:])):
            if any(a.get(key) != b.get(key) for key in SAME) or _integers(a).keys() != _integers(b).keys():
                raise NotVariable(f"the step allocates in another order at {text} than at {at[0]} (from allocation {i} on: {_place(b)} in place of {_place(a)})")
        if len(other) != len(recordings[0]):
            raise NotVariable(f"the step makes {len(other) - 1} allocations and frees at {text} and {len(recordings[0]) - 1} at {at[0]}")


def peak_of(lines: list[dict[str, Any]], values: Optional[list[int]] = None, terms: Optional[list[tuple[int, ...]]] = None) -> int:
    """The peak of live blocks, at other sizes if they are given."""
    powers = [_power(values, t) for t in terms] if values is not None and terms is not None else []
    live = peak = 0
    held: dict[int, int] = {}
    for event in lines[1:]:
        if event["op"] == "alloc":
            vary = event.get("vary", {}).get("/bytes") if powers else None
            size = sum(c * p for c, p in zip(vary, powers)) if vary else event["bytes"]
            held[event["id"]] = -(-size // BLOCK) * BLOCK
            live += held[event["id"]]
            peak = max(peak, live)
        elif event["op"] == "free":
            live -= held.pop(event["id"])
    return peak


def joined(recordings: list[tuple[dict[str, int], list[dict[str, Any]]]], check: tuple[dict[str, int], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The lines of the first recording, with the polynomials of what varies. Raises NotVariable."""
    names = list(recordings[0][0])
    terms, nodes = terms_of(names), [[sizes[n] for n in names] for sizes, _ in recordings]
    said = [" and ".join(f"{n.replace('_', ' ')} {sizes[n]}" for n in names) for sizes, _ in recordings]
    _require_same([lines for _, lines in recordings], said)
    inverse = _inverse([[_power(node, t) for t in terms] for node in nodes])
    known: dict[tuple[int, ...], Optional[list[int]]] = {}
    lines = [dict(line) for line in recordings[0][1]]
    for i, event in enumerate(lines[1:], 1):
        if event["op"] != "alloc":
            continue
        parts = [_integers(other[i]) for _, other in recordings]
        for key in parts[0]:
            values = tuple(part[key] for part in parts)
            if len(set(values)) == 1:
                continue
            if values not in known:
                exact = [sum(a * v for a, v in zip(row, values)) for row in inverse]
                known[values] = [int(c) for c in exact] if all(c.denominator == 1 for c in exact) else None
            if known[values] is None:
                raise NotVariable(f"an allocation of {_place(event)} has {', '.join(map(str, values))} at {', '.join(said)}, which is no polynomial of the size")
            event.setdefault("vary", {})[key] = known[values]
    _vary_guesses(lines[0], [recorded[0] for _, recorded in recordings], inverse)
    sizes, fresh = check
    at = [sizes[n] for n in names]
    real, reckoned = peak_of(fresh), peak_of(lines, at, terms)
    if abs(reckoned - real) > TOLERANCE * real:
        raise NotVariable(f"at {' and '.join(f'{n} {v}' for n, v in zip(names, at))} a fresh recording has a peak of {real} bytes, the interpolation {reckoned}")
    lines[0]["sizes"] = recordings[0][0]
    lines[0]["varies"] = {"names": names, "terms": terms, "recorded": nodes, "from": {n: min(2, recordings[0][0][n]) if n == "batch_size" else max(1, recordings[0][0][n] // 8) for n in names},
                          "checked": {"at": at, "recorded_peak_bytes": real, "interpolated_peak_bytes": reckoned}}
    return lines


def _vary_guesses(header: dict[str, Any], headers: list[dict[str, Any]], inverse: list[list[Fraction]]) -> None:
    for guess in header["guesses"]:
        sizes = [next((g["bytes"] for g in other["guesses"] if g["what"] == guess["what"]), None) for other in headers]
        if None in sizes or len(set(sizes)) == 1:
            continue
        guess["vary"] = [round(sum(a * v for a, v in zip(row, sizes))) for row in inverse]


def write(path: str, lines: list[dict[str, Any]]) -> None:
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8") as out:
        for line in lines:
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
