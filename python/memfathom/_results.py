"""Results as values: the JSON of docs/contract.md as frozen dataclasses.

Each result keeps the library's text (``to_json()``), which is byte for byte what the program prints
with ``--format json``; keys that have no field here are in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional, Union

from ._bytes import Bytes

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

Json = Mapping[str, Any]


def _size(json_: Json, key: str) -> Optional[Bytes]:
    value = json_.get(key)
    return None if value is None else Bytes(value)


def _bytes(json_: Json, key: str) -> Bytes:
    return Bytes(json_.get(key) or 0)


def _texts(json_: Json, key: str) -> tuple[str, ...]:
    return tuple(json_.get(key) or ())


def _text(json_: Json, key: str) -> str:
    return str(json_.get(key) or "")


@dataclass(frozen=True)
class Totals:
    """Per device: what torch calls allocated and reserved, and what nvidia-smi shows."""

    allocated_peak: Bytes
    reserved_peak: Bytes
    device_peak: Bytes
    device_low: Bytes
    device_high: Bytes
    interval: float
    first_iteration_allocated_peak: Optional[Bytes] = None
    host_peak: Optional[Bytes] = None
    host_node: Optional[Bytes] = None
    device_high_on_gpu: Optional[Bytes] = None

    @classmethod
    def _read(cls, json_: Json) -> Totals:
        return cls(
            _bytes(json_, "allocated_peak_bytes"),
            _bytes(json_, "reserved_peak_bytes"),
            _bytes(json_, "device_peak_bytes"),
            _bytes(json_, "device_low_bytes"),
            _bytes(json_, "device_high_bytes"),
            float(json_.get("interval") or 0),
            _size(json_, "first_iteration_allocated_peak_bytes"),
            _size(json_, "host_peak_bytes"),
            _size(json_, "host_node_bytes"),
            _size(json_, "device_high_on_gpu_bytes"),
        )


@dataclass(frozen=True)
class Component:
    """A part of the device peak, and where its figure comes from."""

    name: str
    bytes: Bytes
    source: str
    module: Optional[str] = None

    @classmethod
    def _read(cls, json_: Json) -> Component:
        return cls(_text(json_, "name"), _bytes(json_, "bytes"), _text(json_, "source"), json_.get("module"))


@dataclass(frozen=True)
class Phase:
    """The peak of one phase of an iteration, and what is alive then."""

    name: str
    iteration: int
    allocated_peak: Bytes
    reserved: Bytes
    live_at_peak: Mapping[str, Bytes] = field(hash=False)

    @classmethod
    def _read(cls, json_: Json) -> Phase:
        live = {name: Bytes(count) for name, count in (json_.get("live_at_peak") or {}).items()}
        peak, reserved = _bytes(json_, "allocated_peak_bytes"), _bytes(json_, "reserved_bytes")
        return cls(_text(json_, "name"), int(json_.get("iteration") or 0), peak, reserved, live)


@dataclass(frozen=True)
class Verdict:
    """Whether the job fits: fits, tight, does_not_fit, undecided, or unknown without a target."""

    status: str
    gpu: str
    probability_fits: Optional[float] = None
    capacity: Optional[Bytes] = None
    available: Optional[Bytes] = None
    headroom: Optional[Bytes] = None

    @classmethod
    def _read(cls, json_: Json) -> Verdict:
        return cls(
            _text(json_, "status"),
            _text(json_, "card"),
            json_.get("probability_fits"),
            _size(json_, "capacity_bytes"),
            _size(json_, "available_bytes"),
            _size(json_, "headroom_bytes"),
        )


@dataclass(frozen=True)
class Suggestion:
    """A change that saves memory, what it costs, and the keys of the job that make it."""

    name: str
    change: str
    costs: str
    saves: Bytes
    device_peak: Bytes
    fits: bool
    patch: Json = field(hash=False)

    @classmethod
    def _read(cls, json_: Json) -> Suggestion:
        return cls(
            _text(json_, "name"),
            _text(json_, "change"),
            _text(json_, "costs"),
            _bytes(json_, "saves_bytes"),
            _bytes(json_, "device_peak_bytes"),
            bool(json_.get("fits")),
            json_.get("patch") or {},
        )


@dataclass(frozen=True)
class Calibration:
    """Where the figures that accounting cannot know come from."""

    status: str
    name: str
    id: str
    created: str
    samples: int
    held_out_median_error: Optional[float]
    environment: Json = field(hash=False)

    @classmethod
    def _read(cls, json_: Json) -> Calibration:
        return cls(
            _text(json_, "status"),
            _text(json_, "name"),
            _text(json_, "id"),
            _text(json_, "created"),
            int(json_.get("samples") or 0),
            json_.get("held_out_median_error"),
            json_.get("environment") or {},
        )


@dataclass(frozen=True)
class Explanation:
    """The arithmetic of one component, in words."""

    name: str
    text: str
    module: Optional[str] = None


@dataclass(frozen=True)
class UnreadKey:
    """A key of a file that was not read; ``concerns`` is what it may change, or None."""

    file: str
    key: str
    concerns: Optional[str]


@dataclass(frozen=True)
class Charts:
    """The charts of ``memfathom report`` as SVG."""

    peak: str
    timeline: str


@dataclass(frozen=True)
class _Result:
    _text: str = field(repr=False, compare=False)

    def to_json(self) -> str:
        """The result as the program prints it with ``--format json``."""
        return self._text

    def to_dict(self) -> dict[str, Any]:
        """The result of docs/contract.md as a dictionary."""
        value: dict[str, Any] = json.loads(self._text)
        return value


@dataclass(frozen=True)
class Estimate(_Result):
    """How much memory a job needs.

    >>> import memfathom
    >>> estimate = memfathom.estimate(model="gpt2", sequence_length=256, gpu="rtx-4090")
    >>> estimate.verdict.status
    'fits'
    >>> estimate.totals.device_peak == sum(one.bytes for one in estimate.components)
    True
    """

    id: str
    job: str
    totals: Totals
    components: tuple[Component, ...]
    phases: tuple[Phase, ...]
    verdict: Verdict
    suggestions: tuple[Suggestion, ...]
    calibration: Calibration
    parameters: int
    trainable_parameters: int
    assumptions: tuple[str, ...]
    not_modelled: tuple[str, ...]
    warnings: tuple[str, ...]
    unread: tuple[UnreadKey, ...]
    explanation: tuple[Explanation, ...]
    _draw: Optional[Callable[[], Charts]] = field(default=None, repr=False, compare=False)

    @classmethod
    def _read(cls, text: str, draw: Optional[Callable[[], Charts]] = None) -> Estimate:
        json_ = json.loads(text)
        parameters = json_.get("parameters") or {}
        return cls(
            text,
            _text(json_, "id"),
            _text(json_, "job"),
            Totals._read(json_.get("totals") or {}),
            tuple(Component._read(one) for one in json_.get("components") or ()),
            tuple(Phase._read(one) for one in json_.get("phases") or ()),
            Verdict._read(json_.get("verdict") or {}),
            tuple(Suggestion._read(one) for one in json_.get("suggestions") or ()),
            Calibration._read(json_.get("calibration") or {}),
            int(parameters.get("total") or 0),
            int(parameters.get("trainable") or 0),
            _texts(json_, "assumptions"),
            _texts(json_, "not_modelled"),
            _texts(json_, "warnings"),
            tuple(
                UnreadKey(_text(one, "file"), _text(one, "key"), one.get("concerns"))
                for one in json_.get("unread") or ()
            ),
            tuple(
                Explanation(_text(one, "name"), _text(one, "text"), one.get("module"))
                for one in json_.get("explanation") or ()
            ),
            draw,
        )

    def __getstate__(self) -> dict[str, Any]:
        # A session cannot be pickled; without it only the charts are missing.
        return {**self.__dict__, "_draw": None}

    @property
    def device_peak(self) -> Bytes:
        """What nvidia-smi would show at the peak."""
        return self.totals.device_peak

    @property
    def fits(self) -> Optional[bool]:
        """Whether the estimate is available on the target; None where that is not decided."""
        return {"fits": True, "tight": True, "does_not_fit": False}.get(self.verdict.status)

    @property
    def advice(self) -> str:
        """The cheapest suggestion that makes the job fit, in one sentence; empty if there is none."""
        for one in self.suggestions:
            if one.fits:
                return f"{one.change} needs {one.device_peak} ({one.costs})"
        return ""

    @property
    def charts(self) -> Charts:
        """The charts of ``memfathom report`` as SVG; computed at the first use."""
        if self._draw is None:
            raise RuntimeError("this estimate was restored without its session; estimate the job again for charts")
        return self._draw()

    def __str__(self) -> str:
        verdict = self.verdict
        lines = [self.job]
        if verdict.available is None:
            lines.append(f"needs {self.device_peak}")
        else:
            lines.append(
                f"{verdict.status.replace('_', ' ')} on {verdict.gpu or 'the GPU'}: needs {self.device_peak} of {verdict.available}"
            )
        lines.append(f"{self.totals.interval:.0%} interval {self.totals.device_low} to {self.totals.device_high}")
        largest = sorted(self.components, key=lambda one: -one.bytes)
        lines += [f"  {one.name:<18} {str(one.bytes):>12}  {one.source}" for one in largest]
        lines += [f"warning: {one}" for one in self.warnings]
        if self.advice:
            lines.append(f"advice: {self.advice}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ._html import estimate_html

        return estimate_html(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The components as a DataFrame. Needs pandas."""
        import pandas

        rows = [(one.name, one.module, int(one.bytes), one.source) for one in self.components]
        return pandas.DataFrame(rows, columns=["component", "module", "bytes", "source"])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """Draws the components as one bar, with the interval and what is available. Needs matplotlib."""
        from ._plot import plot_estimate

        return plot_estimate(self, ax)


@dataclass(frozen=True)
class Largest:
    """The largest value of a setting that fits; ``largest`` is None if none does."""

    name: str
    now: Any
    largest: Optional[int]
    device_peak: Optional[Bytes] = None
    patch: Optional[Json] = field(default=None, hash=False)


@dataclass(frozen=True)
class Configuration:
    """Several changes that together reach an aim."""

    name: str
    aim: str
    changes: tuple[str, ...]
    device_peak: Bytes
    patch: Json = field(hash=False)
    yaml: str


@dataclass(frozen=True)
class Recommendation(_Result):
    """What to change so that a job fits, and how large it may become."""

    job: str
    fits: Optional[bool]
    device_peak: Bytes
    available: Optional[Bytes]
    suggestions: tuple[Suggestion, ...]
    largest: tuple[Largest, ...]
    configurations: tuple[Configuration, ...]
    warnings: tuple[str, ...]

    @classmethod
    def _read(cls, text: str) -> Recommendation:
        json_ = json.loads(text)
        return cls(
            text,
            _text(json_, "job"),
            json_.get("fits"),
            _bytes(json_, "device_peak_bytes"),
            _size(json_, "available_bytes"),
            tuple(Suggestion._read(one) for one in json_.get("suggestions") or ()),
            tuple(
                Largest(
                    _text(one, "name"),
                    one.get("now"),
                    one.get("largest"),
                    _size(one, "device_peak_bytes"),
                    one.get("patch"),
                )
                for one in json_.get("largest") or ()
            ),
            tuple(
                Configuration(
                    _text(one, "name"),
                    _text(one, "aim"),
                    _texts(one, "changes"),
                    _bytes(one, "device_peak_bytes"),
                    one.get("patch") or {},
                    _text(one, "yaml"),
                )
                for one in json_.get("configurations") or ()
            ),
            _texts(json_, "warnings"),
        )


@dataclass(frozen=True)
class Strategy:
    """One line of a comparison."""

    name: str
    device_peak: Bytes
    allocated_peak: Bytes
    saved_fraction: float
    trainable_parameters: int
    verdict: str
    headroom: Optional[Bytes] = None


@dataclass(frozen=True)
class Comparison(_Result):
    """Strategies next to each other."""

    baseline: str
    strategies: tuple[Strategy, ...]

    @classmethod
    def _read(cls, text: str) -> Comparison:
        json_ = json.loads(text)
        return cls(
            text,
            _text(json_, "baseline"),
            tuple(
                Strategy(
                    _text(one, "name"),
                    _bytes(one, "device_peak_bytes"),
                    _bytes(one, "allocated_peak_bytes"),
                    float(one.get("saved_fraction") or 0),
                    int(one.get("trainable_parameters") or 0),
                    _text(one, "verdict"),
                    _size(one, "headroom_bytes"),
                )
                for one in json_.get("strategies") or ()
            ),
        )

    def to_pandas(self) -> pandas.DataFrame:
        """The strategies as a DataFrame. Needs pandas."""
        import pandas

        rows: list[dict[str, Union[str, int, float, None]]] = [
            {
                "strategy": one.name,
                "device_peak_bytes": int(one.device_peak),
                "allocated_peak_bytes": int(one.allocated_peak),
                "saved_fraction": one.saved_fraction,
                "trainable_parameters": one.trainable_parameters,
                "verdict": one.verdict,
            }
            for one in self.strategies
        ]
        return pandas.DataFrame(rows)


@dataclass(frozen=True)
class Gpu:
    """A GPU that can be named as a target; with a job also how the job fits on it."""

    name: str
    memory: Bytes
    architecture: str
    vendor: str
    product: str
    kind: str
    device_peak: Optional[Bytes] = None
    headroom: Optional[Bytes] = None
    verdict: Optional[str] = None

    @classmethod
    def _read(cls, json_: Json) -> Gpu:
        return cls(
            _text(json_, "name"),
            _bytes(json_, "memory_bytes"),
            _text(json_, "architecture"),
            _text(json_, "vendor"),
            _text(json_, "product"),
            _text(json_, "kind"),
            _size(json_, "device_peak_bytes"),
            _size(json_, "headroom_bytes"),
            json_.get("verdict"),
        )


@dataclass(frozen=True)
class Model:
    """A model that can be named."""

    name: str
    parameters: int
    description: str
