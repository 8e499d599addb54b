from collections.abc import Callable, Sequence
from typing import Any, overload

from . import Tensor

@overload
def grad(loss: Tensor, wrt: Tensor, *, zero_unused: bool = ...) -> Tensor: ...
@overload
def grad(loss: Tensor, wrt: Sequence[Tensor], *, zero_unused: bool = ...) -> list[Tensor]: ...
def value_and_grad(function: Callable[..., Tensor], argnums: int | Sequence[int] = ..., *, zero_unused: bool = ...) -> Callable[..., tuple[Tensor, Any]]: ...
