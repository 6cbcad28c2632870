"""What the observer seam costs when nobody watches: the same code with the seam and with the seam cut out.

    python bench/observer.py [--rounds N] [--ledger]

The package is imported twice into one process. The second time its source is rewritten on the way in: ``x.see(name,
value)`` becomes ``value``, ``x.at(place)`` becomes ``x``, ``x.active`` becomes ``False``. Both have the same weights
and give the same numbers (checked). They take turns, now one first, now the other, on one thread; the figure is the
median of the ratios of CPU time, with the seam over without, and 1.01 is the bound. CPU time, because another process
on the machine must not count. Where even that is noisy, the last two columns say how often the work passes the seam,
and what share of its time so many passes take when timed by themselves. ``--ledger`` appends the result to
bench/ledger.jsonl.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ledger import enter

PRESETS = ["lstm", "bahdanau", "transformer-tiny", "transformer-small"]
REWRITTEN = ("regard.nn.", "regard.models.")
BOUND = 1.01
SIZE, ROWS, LENGTH = 8000, 16, 24


class Cut(ast.NodeTransformer):
    """Takes the seam out of a module's source, and counts what it took."""

    def __init__(self) -> None:
        self.count = 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("see", "at"):
            self.count += 1
            return node.args[1] if node.func.attr == "see" else node.func.value
        if isinstance(node.func, ast.Name) and node.func.id == "_seen":  # the recurrent cells' own `see`
            self.count += 1
            return node.args[2]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr == "active":
            self.count += 1
            return ast.Constant(value=False)
        return node


class Loader(SourceFileLoader):
    """Loads a module without its seam, and never from or into a cache."""

    cut = 0

    def path_stats(self, path: str) -> Any:
        raise OSError(path)

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        transformer = Cut()
        tree = ast.fix_missing_locations(transformer.visit(ast.parse(data)))
        Loader.cut += transformer.count
        return compile(tree, path, "exec", dont_inherit=True)


class Finder(MetaPathFinder):
    """Sends the modules that hold the seam to `Loader`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.origin and name.startswith(REWRITTEN) and not name.endswith("observe"):
            spec.loader = Loader(name, spec.origin)
        return spec


class Package:
    """One import of the whole package, under no name that the other could find."""

    def __init__(self, finder: MetaPathFinder | None = None) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "regard"]:
            del sys.modules[name]
        if finder:
            sys.meta_path.insert(0, finder)
        self.regard = importlib.import_module("regard")
        self.build = importlib.import_module("regard.models.build")
        self.settings = importlib.import_module("regard.settings")
        self.search = importlib.import_module("regard.decode.search")
        self.rules = importlib.import_module("regard.decode.rules")
        self.observe = importlib.import_module("regard.nn.observe")
        if finder:
            sys.meta_path.remove(finder)

    def model(self, preset: str) -> Any:
        torch.manual_seed(0)
        return self.build.encoder_decoder(self.settings.load_settings(preset).model, SIZE, SIZE)

    def forward(self, model: Any, source: Tensor, target: Tensor) -> Tensor:
        """What training does before the gradient."""
        torch.manual_seed(0)  # of dropout
        return model.train()(source, target)

    def decode(self, model: Any, source: Tensor, target: Tensor) -> Tensor:
        """A beam of five over a few steps."""
        model.eval()
        with torch.no_grad():
            first, state = model.start(source)
            limit = torch.full((len(source),), target.shape[1])
            found = self.search.search(model, first, state, limit, rule=self.rules.Beam(5))
        return torch.tensor([best[0].log_probability for best in found])


def seconds(work: Callable[[], Tensor]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def calls(package: Package, work: Callable[[], Tensor]) -> int:
    """How often a piece of work passes the seam."""
    unobserved, count = package.observe.Unobserved, 0
    at, see = unobserved.at, unobserved.see

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            nonlocal count
            count += 1
            return original(*given)

        return called

    unobserved.at, unobserved.see = counted(at), counted(see)
    work()
    unobserved.at, unobserved.see = at, see
    return count


def nanoseconds(package: Package, trials: int = 300_000) -> float:
    """What one pass of the seam costs, the loop around it included."""
    see, value = package.observe.UNOBSERVED.see, torch.zeros(1)
    began = time.process_time()
    for _ in range(trials):
        see("weights", value)
    return 1e9 * (time.process_time() - began) / trials


def measure(packages: tuple[Package, Package], preset: str, rounds: int) -> dict[str, object]:
    """The ratio of each work, with over without, as the median of rounds that take turns in who begins."""
    models = [package.model(preset) for package in packages]
    source, target = torch.randint(4, SIZE, (ROWS, LENGTH)), torch.randint(4, SIZE, (ROWS, LENGTH))
    for row in range(ROWS):  # unequal lengths, as in a bucket
        source[row, LENGTH - row % 6 :] = 0
    result: dict[str, object] = {"preset": preset}
    for name in ("forward", "decode"):
        works = [
            lambda package=package, model=model: getattr(package, name)(model, source, target)  # noqa: B023
            for package, model in zip(packages, models, strict=True)
        ]
        torch.testing.assert_close(works[0](), works[1]())
        times: list[tuple[float, float]] = []
        gc.disable()
        for trial in range(rounds):
            if trial % 2:
                without, seam = seconds(works[1]), seconds(works[0])
            else:
                seam, without = seconds(works[0]), seconds(works[1])
            times.append((seam, without))
        gc.enable()
        ratios = sorted(seam / without for seam, without in times)
        result[name] = round(statistics.median(ratios), 4)
        result[f"{name}_middle_half"] = [round(ratios[len(ratios) // 4], 4), round(ratios[-1 - len(ratios) // 4], 4)]
        result[f"{name}_best"] = round(min(seam for seam, _ in times) / min(without for _, without in times), 4)
        usual = statistics.median(seam for seam, _ in times)
        passes = calls(packages[0], works[0])
        result[f"{name}_ms"] = round(1000 * usual, 2)
        result[f"{name}_calls"] = passes
        result[f"{name}_share"] = round(passes * nanoseconds(packages[0]) / 1e9 / usual, 6)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description="Time with the observer seam over time without it, nobody watching.")
    parser.add_argument("--rounds", type=int, default=61)
    parser.add_argument("--presets", nargs="+", default=PRESETS)
    parser.add_argument("--ledger", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = Package(), Package(Finder())
    print(f"{Loader.cut} places of the seam cut out; {arguments.rounds} rounds; with / without, bound {BOUND}")
    print(f"{'preset':20}{'':9}{'median':>8}{'middle half':>18}{'best':>8}{'ms':>9}{'calls':>8}{'of time':>9}")
    worst = 0.0
    for preset in arguments.presets:
        result = measure(packages, preset, arguments.rounds)
        for name in ("forward", "decode"):
            low, high = result[f"{name}_middle_half"]  # type: ignore[misc]
            numbers = (
                f"{result[name]:8.4f}{low:>9.4f} … {high:.4f}{result[f'{name}_best']:8.4f}{result[f'{name}_ms']:9.1f}"
            )
            counted = f"{result[f'{name}_calls']:8}{result[f'{name}_share']:9.3%}"
            print(f"{preset:20}{name:9}{numbers}{counted}")
            worst = max(worst, float(result[name]))  # type: ignore[arg-type]
        if arguments.ledger:
            about = {"threads": torch.get_num_threads(), "torch": torch.__version__}
            enter("observer", about | result, f"python bench/observer.py --rounds {arguments.rounds} --ledger")
    print(f"worst median {worst:.4f}: {'within' if worst <= BOUND else 'above'} the bound")
    return worst > BOUND


if __name__ == "__main__":
    sys.exit(main())
