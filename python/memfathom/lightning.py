"""A callback for Lightning.

    trainer = Trainer(callbacks=[MemoryCallback("job.yaml", on_misfit="stop")])

A LightningModule may hold anything, so the job is named: any form that `memfathom.estimate` takes. What the Lightning trainer
decides (accumulation, clipping, the number of devices) is taken from it unless the job says it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

from ._watch import Meter, OnMisfit, Watcher

if TYPE_CHECKING:
    import os

    from ._results import Estimate
    from ._session import Session

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the same classes under their older name
    from pytorch_lightning.callbacks import Callback


class MemoryCallback(Callback):  # type: ignore[misc]
    """Estimates before the first step, compares after it, warns or stops with the advice, records the observation."""

    def __init__(
        self,
        job: Any = None,
        *,
        on_misfit: OnMisfit = "warn",
        record: bool = True,
        db: Union[str, os.PathLike[str], None] = None,
        meter: Optional[Meter] = None,
        session: Optional[Session] = None,
        **keys: Any,
    ) -> None:
        self._watcher = Watcher(
            on_misfit=on_misfit, record=record, db=db, meter=meter, session=session, source="memfathom.lightning"
        )
        self._job, self._keys = job, keys

    @property
    def estimate(self) -> Optional[Estimate]:
        """The estimate of the run, from its beginning on."""
        return self._watcher.estimate

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        keys = dict(self._keys)
        if trainer.accumulate_grad_batches > 1:
            keys.setdefault("gradient_accumulation_steps", trainer.accumulate_grad_batches)
        if trainer.gradient_clip_val:
            keys.setdefault("gradient_clipping", True)
        if trainer.world_size > 1:
            keys.setdefault("num_gpus", trainer.world_size)
        self._watcher.begin(self._job, keys)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._watcher.step()

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self._watcher.end()
