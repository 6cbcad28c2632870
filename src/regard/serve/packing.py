"""Tensors in JSON, the one way there is: little-endian float32 in base64, exact and a third larger than its bytes."""

from __future__ import annotations

import base64

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor


class Packed(BaseModel):
    """Numbers of any shape."""

    model_config = ConfigDict(frozen=True)

    shape: tuple[int, ...] = Field(description="Size of each axis; the last runs fastest.", examples=[(1, 2)])
    data: str = Field(description="Little-endian float32 in base64.", examples=["AAAAPwAAgD4="])


def pack(values: Tensor) -> Packed:
    """A tensor on its way to a client."""
    numbers = values.detach().to("cpu", torch.float32).contiguous().numpy().astype("<f4", copy=False)
    return Packed(shape=tuple(values.shape), data=base64.b64encode(numbers.tobytes()).decode("ascii"))
