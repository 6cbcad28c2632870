"""The public names of ``regard``, with how each is called."""

from __future__ import annotations

import inspect
import re
from typing import Any

import regard

_PLACE = re.compile(r"\b(?:regard|collections|pathlib|typing|torch)(?:\.\w+)*\.(\w+)")  # where a type is defined


def names() -> dict[str, Any]:
    """Every public name, and what the predictor of a run can do."""
    found = {name: _told(getattr(regard, name)) for name in dir(regard)}
    return found | {'load("demo")': _told(type(regard.load("demo", device="cpu")))}


def _told(thing: Any) -> Any:
    if not inspect.isclass(thing):
        return _signature(thing)
    members = {name: member for name, member in inspect.getmembers(thing) if not name.startswith("_")}
    own = {name: member for name, member in members.items() if _is_ours(thing, name)}
    return {"()": _signature(thing)} | {name: _signature(member) for name, member in own.items()}


def _is_ours(thing: type, name: str) -> bool:
    """Whether a member is defined by us, not by a library's class that ours extends."""
    owner = next((each for each in thing.__mro__ if name in vars(each)), None)
    return owner is not None and owner.__module__.split(".")[0] == "regard"


def _signature(thing: Any) -> str:
    try:
        return _PLACE.sub(r"\1", re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing))))
    except (TypeError, ValueError):
        return type(thing).__name__
