"""A hook for models that are trained with accelerate.

    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    hook = attach(model, batch_size=4, sequence_length=512, on_misfit="stop")
    ...  # the training loop
    hook.finish()

The job is the model's configuration and the keywords; a job that is named wins. It is estimated before the first forward pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

from ._watch import Meter, Observation, OnMisfit, Watcher

if TYPE_CHECKING:
    import os

    from ._results import Estimate
    from ._session import Session

from accelerate.hooks import ModelHook, add_hook_to_module


class MemoryHook(ModelHook):  # type: ignore[misc]
    """Estimates before the first forward pass, compares when the second begins, records the observation at the end."""

    def __init__(self, watcher: Watcher, job: Any, keys: dict[str, Any]) -> None:
        self._watcher, self._job, self._keys = watcher, job, keys

    @property
    def estimate(self) -> Optional[Estimate]:
        """The estimate of the run, from the first forward pass on."""
        return self._watcher.estimate

    def pre_forward(self, module: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if self._watcher.estimate is None:
            self._watcher.begin(self._job, self._keys)
        else:
            self._watcher.step()  # the step before is complete
        return args, kwargs

    def finish(self) -> Optional[Observation]:
        """Keeps the observed peaks; to be called after the last step."""
        return self._watcher.end() if self._watcher.estimate is not None else None


def attach(
    model: Any,
    job: Any = None,
    *,
    on_misfit: OnMisfit = "warn",
    record: bool = True,
    db: Union[str, os.PathLike[str], None] = None,
    meter: Optional[Meter] = None,
    session: Optional[Session] = None,
    **keys: Any,
) -> MemoryHook:
    """Adds the hook to the model next to those that it has."""
    watcher = Watcher(
        on_misfit=on_misfit, record=record, db=db, meter=meter, session=session, source="memfathom.accelerate"
    )
    plain = model
    while job is None and not hasattr(plain, "config") and hasattr(plain, "module"):
        plain = plain.module  # inside DistributedDataParallel
    hook = MemoryHook(watcher, plain if job is None else job, keys)
    add_hook_to_module(model, hook, append=True)
    return hook
