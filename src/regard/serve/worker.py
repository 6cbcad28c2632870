"""One thread owns each model. Requests wait for it in a bounded queue; a full queue is an answer, not a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from regard.prediction import Predictor
from regard.translator import Translator

Model = Predictor | Translator
Result = TypeVar("Result")


class Worker:
    """A model and the thread that alone may touch it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1)

    async def call(self, work: Callable[[Model], Result]) -> Result:
        """Do this with the model, on its own thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._model)

    def close(self) -> None:
        self._thread.shutdown()
