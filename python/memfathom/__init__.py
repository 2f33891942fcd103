"""memfathom: how much GPU memory a training or inference job needs, before it runs.

    >>> import memfathom
    >>> memfathom.fits(model="llama-2-7b", precision="bf16", sequence_length=2048, gpu="a100-80gb")
    True

The functions of the module use one session with the user's database; `Session` opens others. The
answers are those of the program `memfathom`: both are libmemfathom. docs/python.md has recipes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, overload

from ._bytes import Bytes
from ._errors import DeviceError, DoesNotFitError, Error, InternalError, JobError, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import torch

    from ._jobs import Job
    from ._results import (
        Calibration,
        Charts,
        Comparison,
        Component,
        Configuration,
        Estimate,
        Explanation,
        Gpu,
        Largest,
        Model,
        Phase,
        Recommendation,
        Strategy,
        Suggestion,
        Totals,
        UnreadKey,
        Verdict,
    )
    from ._session import Session
    from ._watch import MemoryWarning, Meter, Observation, TorchMeter, Watcher, watch

__version__ = "0.1.0"

# Most of the package is imported when it is asked for: scripts import memfathom at their top, and few of them use all of it.
_MODULES = {
    "_jobs": ("Job",),
    "_results": (
        "Calibration",
        "Charts",
        "Comparison",
        "Component",
        "Configuration",
        "Estimate",
        "Explanation",
        "Gpu",
        "Largest",
        "Model",
        "Phase",
        "Recommendation",
        "Strategy",
        "Suggestion",
        "Totals",
        "UnreadKey",
        "Verdict",
    ),
    "_session": ("Session",),
    "_watch": ("MemoryWarning", "Meter", "Observation", "TorchMeter", "Watcher", "watch"),
}


def __getattr__(name: str) -> Any:
    if name in ("capture", "recording"):  # they need PyTorch, which this package does not
        from . import torch as recorder

        return getattr(recorder, name)
    for module, names in _MODULES.items():
        if name in names:
            from importlib import import_module

            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__} has no attribute {name}")


def _session_of_module() -> Session:
    from ._session import default_session

    return default_session()


def _is_torch_module(value: object) -> bool:
    """Without importing PyTorch: a module exists only where it was imported."""
    nn: Any = getattr(sys.modules.get("torch"), "nn", None)
    return nn is not None and isinstance(value, nn.Module)


def estimate(job: Union[Job, torch.nn.Module] = None, example_batch: Any = None, *, explain: bool = False, **keys: Any) -> Estimate:
    """How much memory the job needs; see `Session.estimate`.

    With a module of PyTorch and a batch that its forward takes, a training step is recorded and estimated;
    `loss`, `optimizer` and `gpu` are those of `memfathom.torch.estimate`. A model of transformers without a batch is
    read as its configuration.
    """
    if example_batch is None:
        if _is_torch_module(job) and not hasattr(getattr(job, "config", None), "to_dict"):
            raise JobError(f"{type(job).__name__} is a torch.nn.Module; give a batch, too, with which a step is recorded: estimate(model, batch)")
        return _session_of_module().estimate(job, explain=explain, **keys)
    if not _is_torch_module(job):
        raise JobError(f"a batch belongs to a torch.nn.Module; {type(job).__name__} is a job, whose keys are named (batch_size=8)")
    from .torch.answer import recorded_job

    module: Any = job
    with recorded_job(module, example_batch, **keys) as recorded:
        return _session_of_module().estimate(recorded, explain=explain)


@overload
def estimate_many(
    jobs: Iterable[Job], *, workers: Optional[int] = None, errors: Literal["raise"] = "raise", **keys: Any
) -> Iterator[Estimate]: ...


@overload
def estimate_many(
    jobs: Iterable[Job], *, workers: Optional[int] = None, errors: Literal["return"], **keys: Any
) -> Iterator[Union[Estimate, Error]]: ...


def estimate_many(
    jobs: Iterable[Job], *, workers: Optional[int] = None, errors: Literal["raise", "return"] = "raise", **keys: Any
) -> Iterator[Union[Estimate, Error]]:
    """Estimates of many jobs on all cores, in their order; see `Session.estimate_many`."""
    return _session_of_module().estimate_many(jobs, workers=workers, errors=errors, **keys)


def recommend(job: Job = None, *, probability: Optional[float] = None, **keys: Any) -> Recommendation:
    """What to change so that the job fits; see `Session.recommend`."""
    return _session_of_module().recommend(job, probability=probability, **keys)


def compare(
    job: Job = None,
    *,
    strategies: Optional[Sequence[str]] = None,
    patches: Optional[Mapping[str, Mapping[str, Any]]] = None,
    grid: Optional[Sequence[str]] = None,
    targets: Optional[Sequence[str]] = None,
    ranked: bool = False,
    **keys: Any,
) -> Comparison:
    """Strategies next to each other; see `Session.compare`."""
    return _session_of_module().compare(
        job, strategies=strategies, patches=patches, grid=grid, targets=targets, ranked=ranked, **keys
    )


def fits(job: Job = None, *, gpu: Optional[str] = None, strict: bool = False, **keys: Any) -> bool:
    """Whether the job fits on the GPU; see `Session.fits`."""
    return _session_of_module().fits(job, gpu=gpu, strict=strict, **keys)


def gpus(job: Job = None, **keys: Any) -> tuple[Gpu, ...]:
    """The GPUs that can be named, or that a job fits on; see `Session.gpus`."""
    return _session_of_module().gpus(job, **keys)


def models() -> tuple[Model, ...]:
    """The models that can be named; see `Session.models`."""
    return _session_of_module().models()


__all__ = [
    "Bytes",
    "Calibration",
    "Charts",
    "Comparison",
    "Component",
    "Configuration",
    "DeviceError",
    "DoesNotFitError",
    "Error",
    "Estimate",
    "Explanation",
    "Gpu",
    "InternalError",
    "Job",
    "JobError",
    "Largest",
    "MemoryWarning",
    "Meter",
    "Model",
    "Observation",
    "Phase",
    "Recommendation",
    "Session",
    "Strategy",
    "Suggestion",
    "TorchMeter",
    "Totals",
    "UndecidedError",
    "UnreadKey",
    "Verdict",
    "Watcher",
    "compare",
    "estimate",
    "estimate_many",
    "fits",
    "gpus",
    "models",
    "recommend",
    "watch",
]
