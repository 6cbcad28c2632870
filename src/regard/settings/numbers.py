"""Numbers that settings have: counts, sizes of models, and shares. What no machine has room for is refused here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=1, le=1 << 40)]
Size = Annotated[int, Field(ge=1, le=1 << 20)]
Depth = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(ge=0.0, lt=1.0)]
