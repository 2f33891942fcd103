"""An estimate as HTML for notebooks: self-contained, without scripts."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._results import Estimate

_STYLE = """
.memfathom { max-width: 60rem; font: 14px/1.5 system-ui, sans-serif; }
.memfathom .verdict { padding: .3rem .8rem; border-left: .4rem solid #888; margin: .5rem 0; }
.memfathom .fits { border-color: #228833; } .memfathom .tight { border-color: #ccbb44; }
.memfathom .does_not_fit { border-color: #cc3311; }
.memfathom svg { width: 100%; height: auto; } .memfathom svg text { font: 12px system-ui, sans-serif; fill: #777; }
.memfathom .grid { stroke: #8884; } .memfathom .mark { stroke: #888; stroke-dasharray: 2 3; }
.memfathom .line { stroke: currentColor; stroke-width: 1.5; } .memfathom .limit { stroke: #cc3311; stroke-width: 2; }
.memfathom .key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; }
.memfathom summary { cursor: pointer; } .memfathom td { text-align: left; padding: 0 1rem 0 0; }
"""


def _headline(estimate: Estimate) -> str:
    verdict, totals = estimate.verdict, estimate.totals
    sentence = f"<b>{escape(verdict.status.replace('_', ' '))}</b>: {estimate.device_peak}"
    if verdict.available is not None:
        sentence += f" of {verdict.available} on {escape(verdict.gpu or 'the GPU')}"
    if verdict.probability_fits is not None:
        sentence += f", fits with probability {verdict.probability_fits:.1%}"
    return f"{sentence} ({totals.interval:.0%} interval {totals.device_low} to {totals.device_high})"


def _legend(peak: str) -> str:
    # The chart knows its colours; each part of the bar has its name and size as a title, escaped already.
    parts = re.findall(r'fill="(#[0-9a-f]{6})"><title>([^<]+)</title>', peak)
    return "".join(f'<span class="key" style="background:{colour}"></span>{name}' for colour, name in parts)


def estimate_html(estimate: Estimate) -> str:
    rows = "".join(
        f"<tr><td>{escape(one.name)}</td><td>{one.bytes}</td><td>{escape(one.source)}</td></tr>"
        for one in sorted(estimate.components, key=lambda one: -one.bytes)
    )
    notes = "".join(f"<li>warning: {escape(one)}</li>" for one in estimate.warnings)
    if estimate.advice:
        notes += f"<li>advice: {escape(estimate.advice)}</li>"
    charts = estimate.charts
    return (
        f'<div class="memfathom"><style>{_STYLE}</style><div>{escape(estimate.job)}</div>'
        f'<div class="verdict {escape(estimate.verdict.status)}">{_headline(estimate)}</div>'
        f"{charts.peak}<div>{_legend(charts.peak)}</div>{charts.timeline}<ul>{notes}</ul>"
        f"<details><summary>components</summary><table>{rows}</table></details></div>"
    )
