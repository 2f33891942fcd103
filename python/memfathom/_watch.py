"""Watcher: estimates a job before it runs, compares while it runs, keeps what was observed.

The integrations (`memfathom.hf`, `memfathom.lightning`, `memfathom.accelerate`) and `memfathom.watch` share it.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Optional, Protocol, Union

from ._bytes import Bytes
from ._errors import DeviceError, DoesNotFitError
from ._jobs import request
from ._results import Estimate
from ._session import Session, default_session

_log = logging.getLogger("memfathom")

OnMisfit = Literal["stop", "warn", "ignore"]


class MemoryWarning(UserWarning):
    """A job that is about to run does not fit, or is tight."""


@dataclass(frozen=True)
class Observation:
    """Measured peaks of a run: allocated, reserved (torch's counters) and device (NVML), as far as known."""

    peaks: Mapping[str, Bytes]
    gpu: str = ""
    framework_version: str = ""


class Meter(Protocol):
    """What measures a run. `TorchMeter` is the real one."""

    def reset(self) -> None: ...

    def read(self) -> Optional[Observation]: ...


class TorchMeter:
    """Peaks of this process on one CUDA device: torch's counters, and NVML's figure where pynvml is installed.

    Without torch or without a GPU it measures nothing.
    """

    def __init__(self, device: Optional[int] = None) -> None:
        self._device = device
        self._device_peak = 0

    def _torch(self) -> Any:
        torch = sys.modules.get("torch")  # a run that uses torch has imported it
        return torch if torch is not None and torch.cuda.is_available() else None

    def _index(self, torch: Any) -> int:
        return int(torch.cuda.current_device() if self._device is None else self._device)

    def reset(self) -> None:
        torch = self._torch()
        self._device_peak = 0
        if torch is not None:
            torch.cuda.reset_peak_memory_stats(self._index(torch))

    def _used_on_device(self, torch: Any, index: int) -> int:
        try:
            import pynvml  # pyright: ignore[reportMissingImports]

            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(index).uuid}")
            processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except Exception:  # an optional reading: whatever fails in a foreign library, the run goes on
            return 0
        return sum(int(one.usedGpuMemory or 0) for one in processes if one.pid == os.getpid())

    def read(self) -> Optional[Observation]:
        torch = self._torch()
        if torch is None:
            return None
        index = self._index(torch)
        # torch never gives memory back by itself, so that a reading after a step has the step's reserved peak.
        self._device_peak = max(self._device_peak, self._used_on_device(torch, index))
        peaks = {
            "allocated": Bytes(torch.cuda.max_memory_allocated(index)),
            "reserved": Bytes(torch.cuda.max_memory_reserved(index)),
        }
        if self._device_peak:
            peaks["device"] = Bytes(self._device_peak)
        peaks = {metric: peak for metric, peak in peaks.items() if peak}
        return Observation(peaks, str(torch.cuda.get_device_name(index)), str(torch.__version__)) if peaks else None


class Watcher:
    """One run of one job.

    ``on_misfit`` says what happens when the job does not fit: "stop" raises DoesNotFitError with the advice,
    "warn" warns, "ignore" is silent. With ``record`` the observed peaks are kept (``memfathom observe``) in ``db``, by
    default the user's database. ``meter`` measures; by default it is torch's and NVML's counters.
    """

    def __init__(
        self,
        *,
        on_misfit: OnMisfit = "warn",
        record: bool = True,
        db: Union[str, os.PathLike[str], None] = None,
        meter: Optional[Meter] = None,
        session: Optional[Session] = None,
        source: str = "memfathom.watch",
    ) -> None:
        if on_misfit not in ("stop", "warn", "ignore"):
            raise ValueError(f'on_misfit is "{on_misfit}"; it must be "stop", "warn" or "ignore"')
        self._on_misfit = on_misfit
        self._record = record
        self._db = db
        self._meter: Meter = meter or TorchMeter()
        self._session = session
        self._source = source
        self._document: Mapping[str, Any] = {}
        self.estimate: Optional[Estimate] = None
        self.observation: Optional[Observation] = None

    def begin(self, job: Any = None, keys: Optional[Mapping[str, Any]] = None) -> Estimate:
        """Estimates the job, and warns or stops if it does not fit."""
        if self._session is not None:
            session = self._session
        else:
            session = default_session() if self._db is None else Session(self._db)
        estimate = session._estimate(request(job, keys or {}, {"document": True}))
        self.estimate = estimate
        self._document = estimate.to_dict()["document"]
        for one in estimate.warnings:
            _log.warning("memfathom: %s", one)
        _log.info("memfathom: %s", str(estimate).replace("\n", "; "))
        self._judge(estimate)
        self._meter.reset()
        return estimate

    def _judge(self, estimate: Estimate) -> None:
        verdict = estimate.verdict
        if verdict.status not in ("does_not_fit", "tight") or self._on_misfit == "ignore":
            return
        needs = f"needs {estimate.device_peak}, and {verdict.available} are available on {verdict.gpu or 'the GPU'}"
        if verdict.status == "tight":
            warnings.warn(f"{estimate.job}: tight; it {needs}", MemoryWarning, stacklevel=3)
            return
        advice = (
            f". Advice: {estimate.advice}"
            if estimate.advice
            else ". No single change makes it fit; see memfathom.recommend"
        )
        sentence = f"{estimate.job}: this job does not fit; it {needs}{advice}"
        if self._on_misfit == "stop":
            raise DoesNotFitError(sentence)
        warnings.warn(sentence, MemoryWarning, stacklevel=3)

    def step(self) -> None:
        """To be called after a step: the first one is compared with the estimate."""
        is_first = self.observation is None
        self._read()
        if is_first and self.observation is not None:
            _log.info("memfathom: after the first step: %s", self.comparison())

    def _read(self) -> None:
        read = self._meter.read()
        if read is not None:
            self.observation = read

    def comparison(self) -> str:
        """Estimated against observed, in one line; empty where nothing was observed."""
        if self.estimate is None or self.observation is None:
            return ""
        totals = self.estimate.totals
        estimated = {"allocated": totals.allocated_peak, "reserved": totals.reserved_peak, "device": totals.device_peak}
        return ", ".join(
            f"{metric} {peak} observed, {estimated[metric]} estimated ({int(estimated[metric]) / int(peak) - 1:+.1%})"
            for metric, peak in self.observation.peaks.items()
        )

    def end(self) -> Optional[Observation]:
        """Reads the peaks a last time and keeps them."""
        self._read()
        if self.observation is not None:
            _log.info("memfathom: %s", self.comparison())
            if self._record and self._document:
                self._store(self.observation)
        return self.observation

    def _store(self, observation: Observation) -> None:
        shared = {
            "job": self._document,
            "framework": "pytorch",
            "framework_version": observation.framework_version,
            "source": self._source,
        }
        gpu = (self.estimate.to_dict().get("device") or {}).get("gpu") if self.estimate is not None else None
        if gpu or observation.gpu:
            shared["gpu"] = gpu or observation.gpu
        with tempfile.TemporaryDirectory(prefix="memfathom-") as folder:
            path = os.path.join(folder, "observed.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                for metric, peak in observation.peaks.items():
                    file.write(json.dumps({**shared, "metric": metric, "bytes": int(peak)}) + "\n")
            # A process of its own: the database is the program's, and nothing of it may disturb the run.
            command = [
                sys.executable,
                "-m",
                "memfathom",
                *(["--db", os.fspath(self._db)] if self._db is not None else []),
                "observe",
                path,
            ]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise DeviceError(f"the observation was not kept: {done.stderr.strip()}")


class watch:
    """A run of a plain training loop.

        with memfathom.watch(model="gpt2", batch_size=4, sequence_length=512, gpu="rtx-4090", on_misfit="stop") as run:
            for batch in batches:
                train_step(batch)
                run.step()

    Before the loop the job is estimated; after it the observed peaks are kept. Without a GPU it estimates only. The options
    are those of `Watcher`; all other keywords are keys of the job.
    """

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
        self._watcher = Watcher(on_misfit=on_misfit, record=record, db=db, meter=meter, session=session)
        self._job, self._keys = job, keys

    def __enter__(self) -> Watcher:
        self._watcher.begin(self._job, self._keys)
        return self._watcher

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        # The peaks of a run that failed are not those of the job.
        if kind is None:
            self._watcher.end()
