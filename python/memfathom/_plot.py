"""An estimate drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._results import Estimate


def _new_axes() -> Axes:
    import matplotlib.pyplot

    axes: Axes = matplotlib.pyplot.subplots(figsize=(10, 2))[1]
    return axes


def plot_estimate(estimate: Estimate, given: Optional[Axes]) -> Axes:
    ax = _new_axes() if given is None else given
    start = 0.0
    for one in sorted(estimate.components, key=lambda one: -one.bytes):
        ax.barh([0], [one.bytes.gib], left=start, label=f"{one.name} {one.bytes}")
        start += one.bytes.gib
    totals = estimate.totals
    middle = estimate.device_peak.gib
    ax.errorbar(
        [middle],
        [0],
        xerr=[[middle - totals.device_low.gib], [totals.device_high.gib - middle]],
        color="black",
        capsize=4,
    )
    if estimate.verdict.available is not None:
        ax.axvline(estimate.verdict.available.gib, color="red", label=f"available {estimate.verdict.available}")
    ax.set_yticks([])
    ax.set_xlabel("GiB")
    ax.set_title(estimate.job)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return ax
