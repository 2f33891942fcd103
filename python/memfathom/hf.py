"""A callback for transformers' Trainer, and with it TRL's trainers.

    trainer = Trainer(model, args, train_dataset=data, callbacks=[MemoryCallback(sequence_length=512, on_misfit="stop")])

The job is the model's configuration, its adapters and the TrainingArguments; keywords of the callback are keys of the job and
win. It is estimated before the first step, compared after it, and the observed peaks are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union, cast

from ._watch import Meter, OnMisfit, Watcher

if TYPE_CHECKING:
    import os

    from ._results import Estimate
    from ._session import Session

from transformers import TrainerCallback


def job_of(model: Any, args: Any) -> list[Any]:
    """The parts of a job that a Trainer has in hand."""
    job = [model.config, args]
    adapters = getattr(model, "peft_config", None) or {}
    if adapters:
        # A property of PEFT's models, a method of transformers' models that hold adapters themselves.
        active: Any = model.active_adapters
        names = cast("list[str]", active() if callable(active) else active)
        job.extend(adapters[name] for name in names)
    return job


class MemoryCallback(TrainerCallback):  # type: ignore[misc]
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
            on_misfit=on_misfit, record=record, db=db, meter=meter, session=session, source="memfathom.hf"
        )
        self._job, self._keys = job, keys

    @property
    def estimate(self) -> Optional[Estimate]:
        """The estimate of the run, from its beginning on."""
        return self._watcher.estimate

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        keys = dict(self._keys)
        if args.world_size > 1:
            keys.setdefault("num_gpus", args.world_size)
        self._watcher.begin(self._job if self._job is not None else job_of(kwargs["model"], args), keys)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._watcher.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # Every process has estimated; one of them keeps the observation.
        if state.is_world_process_zero:
            self._watcher.end()
