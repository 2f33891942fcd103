from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Optional, Union

import torch

class Recording:
    enough: bool
    @property
    def steps(self) -> int: ...
    @property
    def was_full(self) -> bool: ...
    @property
    def allocated_peak_bytes(self) -> int: ...
    @property
    def guesses(self) -> list[Any]: ...
    @property
    def operations(self) -> int: ...
    @property
    def events(self) -> int: ...
    def write(self, path: Union[str, PathLike[str]]) -> None: ...

def recording(
    path: Union[str, PathLike[str], None] = None,
    *,
    iterations: int = 2,
    gpu: Optional[Mapping[str, Any]] = None,
    world: int = 1,
    stop: bool = True,
    limited: bool = True,
) -> AbstractContextManager[Recording]: ...
def capture(
    step: Callable[[], object],
    model: Union[torch.nn.Module, Sequence[Optional[torch.nn.Module]], None] = None,
    optimizer: Optional[torch.optim.Optimizer] = None,
    *,
    path: Union[str, PathLike[str], None] = None,
    iterations: int = 2,
    gpu: Optional[Mapping[str, Any]] = None,
) -> Recording: ...
def estimate(model: torch.nn.Module, example_batch: Any, **options: Any) -> dict[str, Any]: ...
