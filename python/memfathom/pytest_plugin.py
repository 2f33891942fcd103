"""A pytest plugin: tests of how much GPU memory a job needs.

    @pytest.mark.gpu_memory(limit="24 GiB", gpu="rtx-4090")
    def test_fine_tuning_stays_within_one_gpu(gpu_memory):
        gpu_memory.estimate("configs/finetune.yaml")

`gpu_memory.estimate` fails the test if the job needs more than the limit or does not fit on the GPU. Where torch sees a GPU, the
peak of what the test itself runs is compared with the limit too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import pytest

from . import Bytes, Estimate
from ._session import default_session
from ._watch import Observation, TorchMeter

_MARK = "gpu_memory"


class GpuMemory:
    """What the fixture `gpu_memory` gives to a test; limit and GPU are those of the test's mark."""

    def __init__(self, limit: Optional[Bytes] = None, gpu: Optional[str] = None) -> None:
        self.limit = limit
        self.gpu = gpu
        self._meter = TorchMeter()

    def estimate(self, job: Any = None, **keys: Any) -> Estimate:
        """Estimates the job and asserts that it stays within the limit and fits on the GPU."""
        __tracebackhide__ = True
        if self.gpu is not None:
            keys.setdefault("gpu", self.gpu)
        estimate = default_session().estimate(job, **keys)
        if self.limit is not None and estimate.device_peak > self.limit:
            pytest.fail(f"the job needs {estimate.device_peak}, more than {self.limit}\n{estimate}", pytrace=False)
        if keys.get("gpu") is not None and not estimate.fits:
            pytest.fail(f"the job does not fit on {keys['gpu']}\n{estimate}", pytrace=False)
        return estimate

    def observe(self) -> Optional[Observation]:
        """The peaks since the test began; None without torch or a GPU."""
        return self._meter.read()

    def check_observed(self) -> None:
        """Asserts that the observed peak stays within the limit."""
        __tracebackhide__ = True
        observed = self.observe()
        if observed is None or self.limit is None:
            return
        metric = next(name for name in ("device", "reserved", "allocated") if name in observed.peaks)
        if observed.peaks[metric] > self.limit:
            pytest.fail(f"{observed.peaks[metric]} were {metric} at the peak, more than {self.limit}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{_MARK}(limit=None, gpu=None): how much GPU memory the test's job may need")


@pytest.fixture
def gpu_memory(request: pytest.FixtureRequest) -> Iterator[GpuMemory]:
    """Asserts estimates and observed peaks against the mark `gpu_memory`."""
    mark = request.node.get_closest_marker(_MARK)
    options: dict[str, Any] = dict(mark.kwargs) if mark is not None else {}
    limit, gpu = options.pop("limit", None), options.pop("gpu", None)
    unknown = [*options, *(mark.args if mark is not None else ())]
    if unknown:
        raise pytest.UsageError(f"the mark {_MARK} takes limit= and gpu=, not {unknown}")
    memory = GpuMemory(None if limit is None else Bytes.parse(limit), gpu)
    memory._meter.reset()
    yield memory
    memory.check_observed()


@pytest.fixture(autouse=True)
def _gpu_memory_of_marked_tests(request: pytest.FixtureRequest) -> None:
    # A marked test is watched also if it does not use the fixture.
    if request.node.get_closest_marker(_MARK) is not None:
        request.getfixturevalue(_MARK)
