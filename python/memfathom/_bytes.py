"""Bytes: a size in memory, an ``int`` that prints with its unit."""

from __future__ import annotations

import re

_UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGTP", start=1):
    _UNITS[f"{_letter}iB"] = 1024**_power
    _UNITS[f"{_letter}B"] = 1000**_power


class Bytes(int):
    """A number of bytes.

    >>> Bytes(25757220864)
    23.99 GiB
    >>> Bytes(25757220864) + 1
    23.99 GiB
    >>> sum([Bytes(2**30), Bytes(2**29)])
    1.50 GiB
    >>> f"{Bytes(3 * 2**20)}, or {Bytes(3 * 2**20):,d} bytes"
    '3.00 MiB, or 3,145,728 bytes'
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str | int) -> Bytes:
        """A size with its unit, as jobs have it; an ``int`` is bytes.

        >>> Bytes.parse("24 GiB")
        24.00 GiB
        >>> Bytes.parse("24GB")
        22.35 GiB
        """
        if isinstance(text, int):
            return cls(text)
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]i?B|B)\s*", text)
        if found is None:
            raise ValueError(f'"{text}" is no size; write a number and a unit, for example "24 GiB"')
        return cls(round(float(found[1]) * _UNITS[found[2]]))

    @property
    def gib(self) -> float:
        """The size in GiB (2**30 bytes)."""
        return int(self) / 2**30

    def __str__(self) -> str:
        size, unit = float(self), "B"
        for unit in ("B", "KiB", "MiB", "GiB"):
            if abs(size) < 1024 or unit == "GiB":
                break
            size /= 1024
        return f"{int(self)} B" if unit == "B" else f"{size:.2f} {unit}"

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        if specification[-1:] in ("", "s", "<", ">", "^") or specification[-1:].isdigit():
            return format(str(self), specification)
        return format(int(self), specification)

    def __add__(self, other: int) -> Bytes:
        return Bytes(int(self) + other)

    def __sub__(self, other: int) -> Bytes:
        return Bytes(int(self) - other)

    __radd__ = __add__  # so that sum() has a unit

    def __mul__(self, other: int) -> Bytes:
        return Bytes(int(self) * other)

    __rmul__ = __mul__

    def __neg__(self) -> Bytes:
        return Bytes(-int(self))

    def __reduce__(self) -> tuple[type[Bytes], tuple[int]]:
        return Bytes, (int(self),)
