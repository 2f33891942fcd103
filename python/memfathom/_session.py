"""Session: the calibrations, GPUs and caches that answers come from, and the questions to it."""

from __future__ import annotations

import functools
import itertools
import json
import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Optional, Union, overload

from . import _library
from ._errors import Error, JobError, UndecidedError
from ._jobs import Job, request
from ._results import Charts, Comparison, Estimate, Gpu, Model, Recommendation

_USER_DATABASE = object()


class Session:
    """An open libmemfathom. It may be used from several threads.

    ``db`` is the path of a database with calibrations, None for none; without it the user's own
    (docs/environment.md). ``live_gpus=False`` never queries this machine's GPUs.

    >>> with Session(db=None, live_gpus=False) as session:
    ...     session.estimate(model="gpt2", sequence_length=256, gpu="rtx-4090").verdict.gpu
    'rtx-4090'
    """

    def __init__(
        self, db: Union[str, os.PathLike[str], None, object] = _USER_DATABASE, *, live_gpus: bool = True
    ) -> None:
        options: dict[str, Any] = {"live_gpus": live_gpus}
        if db is None:
            options["database"] = None
        elif db is not _USER_DATABASE:
            options["database"] = os.fspath(db)  # type: ignore[call-overload]
        self._handle = _library.open_session(json.dumps(options))
        self._finalizer = weakref.finalize(self, _library.close_session, self._handle)

    def close(self) -> None:
        """Releases the session. Close it when no call is running."""
        self._finalizer()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def _ask(self, function: str, text: Optional[str]) -> str:
        if not self._finalizer.alive:
            raise ValueError("the session is closed")
        return _library.ask(function, self._handle, text)

    def _estimate(self, text: str) -> Estimate:
        @functools.lru_cache(maxsize=1)
        def draw() -> Charts:
            charts = json.loads(self._ask("estimate", json.dumps({**json.loads(text), "charts": True})))["charts"]
            return Charts(charts["peak"], charts["timeline"])

        return Estimate._read(self._ask("estimate", text), draw)

    def estimate(self, job: Job = None, *, explain: bool = False, **keys: Any) -> Estimate:
        """How much memory the job needs.

        ``job`` is a dict or dataclass, a path, YAML text, an object of transformers or PEFT, or a list of
        these; ``keys`` are keys of a job without their section, or dotted ones in ``**{...}``, and win.

        >>> Session(db=None).estimate("model: {preset: gpt2}", batch_size=2, sequence_length=256).device_peak
        3.01 GiB
        """
        return self._estimate(request(job, keys, {"explain": explain or None}))

    @overload
    def estimate_many(
        self, jobs: Iterable[Job], *, workers: Optional[int] = None, errors: Literal["raise"] = "raise", **keys: Any
    ) -> Iterator[Estimate]: ...

    @overload
    def estimate_many(
        self, jobs: Iterable[Job], *, workers: Optional[int] = None, errors: Literal["return"], **keys: Any
    ) -> Iterator[Union[Estimate, Error]]: ...

    def estimate_many(
        self,
        jobs: Iterable[Job],
        *,
        workers: Optional[int] = None,
        errors: Literal["raise", "return"] = "raise",
        **keys: Any,
    ) -> Iterator[Union[Estimate, Error]]:
        """Estimates of many jobs, computed on all cores and yielded in their order.

        Jobs are taken from the iterable as they are needed. With ``errors="return"``, a job that cannot be
        answered yields its exception instead of raising it.

        >>> sizes = ({"model": {"preset": "gpt2"}, "training": {"batch_size": n, "sequence_length": 64}} for n in (1, 2, 4))
        >>> [estimate.totals.allocated_peak.gib.__round__(1) for estimate in Session(db=None).estimate_many(sizes)]
        [2.3, 2.3, 2.3]
        """
        if isinstance(jobs, (str, os.PathLike, Mapping)):
            raise JobError(f"jobs are several, and this is one {type(jobs).__name__}; put it into a list")
        if errors not in ("raise", "return"):
            raise ValueError(f'errors is "{errors}"; it must be "raise" or "return"')
        if workers is not None and workers < 1:
            raise ValueError(f"workers is {workers}; it must be at least 1, or None for one per processor")
        return self._estimates(jobs, workers or os.cpu_count() or 1, errors, keys)

    def _estimates(
        self, jobs: Iterable[Job], count: int, errors: Literal["raise", "return"], keys: Mapping[str, Any]
    ) -> Iterator[Union[Estimate, Error]]:
        from concurrent.futures import Future, ThreadPoolExecutor

        remaining = iter(jobs)

        def one(job: Job) -> Union[Estimate, Error]:
            try:
                return self.estimate(job, **keys)
            except Error as error:
                if errors == "raise":
                    raise
                return error

        with ThreadPoolExecutor(count, thread_name_prefix="memfathom") as pool:
            waiting: deque[Future[Union[Estimate, Error]]] = deque()
            try:
                for job in itertools.islice(remaining, 2 * count):
                    waiting.append(pool.submit(one, job))
                while waiting:
                    yield waiting.popleft().result()
                    for job in itertools.islice(remaining, 1):
                        waiting.append(pool.submit(one, job))
            finally:
                for future in waiting:
                    future.cancel()

    def recommend(self, job: Job = None, *, probability: Optional[float] = None, **keys: Any) -> Recommendation:
        """The changes that save memory, and the largest batch, sequence or resolution that fits.

        >>> advice = Session(db=None).recommend(model="llama-2-7b", sequence_length=512, gpu="rtx-4090")
        >>> advice.fits, advice.suggestions[0].name
        (False, 'fused-optimizer')
        """
        return Recommendation._read(self._ask("recommend", request(job, keys, {"probability": probability})))

    def compare(
        self,
        job: Job = None,
        *,
        strategies: Optional[Sequence[str]] = None,
        patches: Optional[Mapping[str, Mapping[str, Any]]] = None,
        grid: Optional[Sequence[str]] = None,
        targets: Optional[Sequence[str]] = None,
        ranked: bool = False,
        **keys: Any,
    ) -> Comparison:
        """Strategies (``memfathom compare --help``) or own changes of a job next to each other.

        >>> table = Session(db=None).compare(model="gpt2", sequence_length=256, strategies=["bf16", "lora"])
        >>> [one.name for one in table.strategies]
        ['baseline', 'bf16', 'lora']
        """
        options = {
            "strategies": strategies,
            "patches": patches,
            "grid": grid,
            "targets": targets,
            "ranked": ranked or None,
        }
        return Comparison._read(self._ask("compare", request(job, keys, options)))

    def fits(self, job: Job = None, *, gpu: Optional[str] = None, strict: bool = False, **keys: Any) -> bool:
        """Whether the job fits on the GPU; ``strict`` wants the interval's upper end to fit.

        Raises UndecidedError if no GPU is known, or if a key that may change the memory was not read.

        >>> Session(db=None).fits(model="llama-2-7b", sequence_length=512, gpu="rtx-4090")
        False
        """
        estimate = self.estimate(job, gpu=gpu, **keys)
        status = estimate.verdict.status
        if status == "unknown":
            raise UndecidedError('whether the job fits is unknown without a GPU; name one, for example gpu="rtx-4090"')
        if status == "undecided":
            raise UndecidedError("whether the job fits is undecided: " + "; ".join(estimate.warnings))
        return status == "fits" or (status == "tight" and not strict)

    def gpus(self, job: Job = None, **keys: Any) -> tuple[Gpu, ...]:
        """All GPUs that can be named; with a job, those that it fits on.

        >>> next(one for one in Session(db=None).gpus() if one.name == "rtx-4090").memory
        23.99 GiB
        """
        text = request(job, keys, {}) if job is not None or keys else None
        return tuple(Gpu._read(one) for one in json.loads(self._ask("gpus", text))["gpus"])

    def models(self) -> tuple[Model, ...]:
        """All models that can be named.

        >>> next(one for one in Session(db=None).models() if one.name == "gpt2").parameters
        124439808
        """
        models = json.loads(self._ask("models", None))["models"]
        return tuple(
            Model(one["name"], int(one.get("parameters") or 0), one.get("description") or "") for one in models
        )


_lock = threading.Lock()
_default: Optional[Session] = None


def default_session() -> Session:
    """The session that the functions of the module use, opened at the first question."""
    global _default
    with _lock:
        if _default is None:
            _default = Session()
        return _default
