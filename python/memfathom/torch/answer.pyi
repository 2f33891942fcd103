from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Literal, Optional, Union

import torch

def recorded_job(
    model: torch.nn.Module,
    example_batch: Any,
    *,
    loss: Optional[Callable[[Any], torch.Tensor]] = None,
    optimizer: Union[
        torch.optim.Optimizer, Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer], Literal[False], None
    ] = None,
    gpu: Optional[str] = None,
) -> AbstractContextManager[dict[str, Any]]: ...
def estimate(model: torch.nn.Module, example_batch: Any, **options: Any) -> dict[str, Any]: ...
