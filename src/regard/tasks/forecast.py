"""Forecasting: a series and how it goes on, as distributions over numbers.

The model is the encoder-decoder that translates, with vectors on both sides: the encoder reads the context, the decoder
writes one moment after another. With the autoregressive head each moment is read before the next is forecast: the true
one in training (teacher forcing), one that was drawn in use. With the direct head the decoder is shown no moment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, assert_never

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.encoding import Examples, RowEncoder
from regard.data.lines import Progress
from regard.data.series import Matrix, Window, WindowEncoder, naive, read_windows
from regard.data.shards import Shards, prepare_corpus
from regard.data.tables import Row
from regard.errors import DataError
from regard.files import new_file
from regard.metrics.forecast import LEVELS, MEDIAN, ForecastResult, ForecastTally, widening
from regard.models import build
from regard.models.generator import EncoderDecoder
from regard.nn import masks
from regard.nn.fast.output_loss import widened
from regard.nn.observe import UNOBSERVED, Observer
from regard.runs import checkpoint
from regard.runs.folder import Run
from regard.settings import ForecastSettings, Settings, TrainSettings
from regard.settings.call import DecodeSettings
from regard.tasks.labels import groups
from regard.tasks.predictor import GREEDY, Rows
from regard.tasks.task import Pairs, Scores, Task, Tensors, drop_words
from regard.text.reading import KnownWords
from regard.text.tokenizers import Tokenizers
from regard.text.vectors import VECTOR, Vectors, parse, written
from regard.text.vocabulary import UNK

if TYPE_CHECKING:
    from pathlib import Path

    from regard.tasks.corpus import Files, Material

OWN, GIVEN = "own predictions", "given the true past"
NARROWEST = 1e-3  # the least deviation that a normal distribution may have


# What a model's outputs mean, for each channel


class Gaussian:
    """A mean and a deviation; the loss is ``−log p``."""

    outputs: ClassVar[int] = 2

    def loss(self, found: Tensor, truth: Tensor) -> Tensor:
        """``found`` (…, F, 2), ``truth`` (…, F)."""
        return F.gaussian_nll_loss(found[..., 0], truth, self._deviation(found) ** 2, full=True, reduction="none")

    def at(self, found: Tensor, share: Tensor) -> Tensor:
        """The number below which such a share lies: the quantile function."""
        return found[..., 0] + self._deviation(found) * torch.special.ndtri(share)

    def _deviation(self, found: Tensor) -> Tensor:
        return F.softplus(found[..., 1]) + NARROWEST


class Quantiles:
    """A number for each of `LEVELS`; the loss is that of quantile regression, twice its mean, an estimate of CRPS."""

    outputs: ClassVar[int] = len(LEVELS)

    def loss(self, found: Tensor, truth: Tensor) -> Tensor:
        """``found`` (…, F, Q), ``truth`` (…, F)."""
        error, levels = truth[..., None] - found, found.new_tensor(LEVELS)
        return 2 * torch.maximum(levels * error, (levels - 1) * error).mean(-1)

    def at(self, found: Tensor, share: Tensor) -> Tensor:
        """Between the levels, and beyond them, on straight lines."""
        ordered = found.sort(-1).values
        place = (share * (len(LEVELS) + 1) - 1).expand(ordered.shape[:-1])
        below = place.floor().clamp(0, len(LEVELS) - 2)
        first, second = (ordered.gather(-1, (below + one).long()[..., None]).squeeze(-1) for one in (0, 1))
        return first + (place - below) * (second - first)


def head_of(cut: ForecastSettings) -> Gaussian | Quantiles:
    match cut.loss:
        case "gaussian":
            return Gaussian()
        case "quantile":
            return Quantiles()
        case _:
            assert_never(cut.loss)


# A trained run in use


@dataclass(frozen=True)
class Forecast:
    """How a series goes on: the quantiles of each moment. An empty series does not."""

    text: str
    quantiles: Matrix  # (H, F, Q)

    @property
    def median(self) -> Matrix:
        return self.quantiles[..., MEDIAN]

    def __str__(self) -> str:
        return written(self.median) if len(self.quantiles) else ""

    def to_dict(self) -> dict[str, Any]:
        return {"forecast": self.median.tolist(), "levels": list(LEVELS), "quantiles": self.quantiles.tolist()}

    fields = to_dict


@dataclass(frozen=True)
class Forecaster:
    """Forecasts how series go on."""

    model: EncoderDecoder = field(repr=False)
    vectors: Vectors = field(repr=False)
    cut: ForecastSettings
    device: torch.device
    run: Run | None = None
    widening: float = 1.0  # of its intervals
    task: ClassVar[Literal["forecast"]] = "forecast"

    @property
    def known(self) -> KnownWords | None:
        return None

    @property
    def channels(self) -> int:
        return len(self.vectors.mean)

    def series(self, texts: Sequence[str]) -> list[Matrix]:
        """The numbers of each text, (S, F)."""
        found = [parse(text, 1, 1)[0] if text.strip() else np.zeros((0, self.channels)) for text in texts]
        for values in found:
            if values.shape[1] != self.channels:
                raise DataError(f"channels = {values.shape[1]}: {self.channels} would be right, as in training")
        return found

    @torch.no_grad()
    def forecast(self, contexts: Sequence[Matrix], truths: Sequence[Matrix] | None = None) -> list[Matrix]:
        """The quantiles (H, F, Q) of each, from its last moments. With ``truths`` each moment is forecast from the true
        ones before it."""
        self.model.eval()
        contexts = [context[-self.cut.context :] for context in contexts]
        found = [np.zeros((0, self.channels, len(LEVELS)))] * len(contexts)
        for group in groups([len(context) for context in contexts]):
            ways = [Window.of(contexts[row], self.vectors, self.cut) for row in group]
            source = self.batch(ways, [contexts[row] for row in group])
            if truths is not None:
                given = np.stack([way.written(truths[row]) for way, row in zip(ways, group, strict=True)])
                scaled = self.quantiles(source, torch.tensor(given, dtype=torch.float32, device=self.device))
            else:
                scaled = self.quantiles(source) if self.cut.head == "direct" else self._drawn(source)
            median = scaled[..., MEDIAN, None]
            scaled = median + self.widening * (scaled - median)
            for way, row, each in zip(ways, group, scaled.double().cpu().numpy(), strict=True):
                found[row] = way.back(each)
        return found

    def batch(self, ways: Sequence[Window], contexts: Sequence[Matrix]) -> Tensor:
        """Padded on the right: (B, S, 1 + F)."""
        rows = [way.read(context, self.vectors.missing) for way, context in zip(ways, contexts, strict=True)]
        longest = max(map(len, rows))
        nothing = (0.0,) * len(rows[0][0])
        return torch.tensor([row + [nothing] * (longest - len(row)) for row in rows], device=self.device)

    def described(self, found: Tensor) -> Tensor:
        """What a model gives, (…, F · P), by channels: (…, F, P)."""
        return widened(found).reshape(*found.shape[:-1], self.channels, -1)

    def quantiles(self, source: Tensor, given: Tensor | None = None, observer: Observer = UNOBSERVED) -> Tensor:
        """All moments at once, (B, H, F, Q), after the ones that are given, (B, H, 2 F), or after none."""
        first = self.model.decoder.embedding.first(len(source), source.device)[:, None]
        if given is None:
            read = first.new_zeros(len(source), self.cut.horizon, first.shape[2])
            read[..., 0], read[:, :1] = UNK, first
        else:
            read = torch.cat((first, F.pad(given, (1, 0), value=float(VECTOR))[:, :-1]), 1)
        found = self.described(self.model(source, read, observer=observer))
        head, levels = head_of(self.cut), found.new_tensor(LEVELS)
        return torch.stack([head.at(found, level) for level in levels], -1)

    def _drawn(self, source: Tensor) -> Tensor:
        """Quantiles of futures that are drawn moment by moment, from each part of a distribution once (a Latin
        hypercube). The draws are the same for every series: none depends on others that are forecast with it."""
        head, rows, paths = head_of(self.cut), len(source), self.cut.paths
        drawn = torch.rand((paths, self.cut.horizon, self.channels), generator=torch.Generator().manual_seed(1))
        shares = ((drawn.argsort(0) + 0.5) / paths).to(self.device).repeat(rows, 1, 1)  # (B · W, H, F)
        vector, state = self.model.start(source)
        every = torch.arange(rows, device=self.device)[:, None].expand(rows, paths)
        vector, state = vector[every.flatten()], state.select(every)
        moments = []
        for moment in range(self.cut.horizon):
            found, state = self.model.step(vector, state)
            values = head.at(self.described(found), shares[:, moment])  # (B · W, F)
            moments.append(values)
            vector = as_vectors(values)
        futures = torch.stack(moments, 1).reshape(rows, paths, self.cut.horizon, self.channels)
        return futures.quantile(futures.new_tensor(LEVELS), 1).permute(1, 2, 3, 0)

    def predict(self, texts: Sequence[str], how: DecodeSettings = GREEDY, *, first: int = 0) -> Sequence[Forecast]:  # noqa: ARG002
        found = self.forecast(self.series(texts))
        return [Forecast(text, each) for text, each in zip(texts, found, strict=True)]

    def read(self, texts: Sequence[str]) -> list[str]:
        return [str(found) for found in self.predict(texts)]

    def evaluate(self, chunks: Iterable[list[Row]], name: str) -> ForecastResult:  # noqa: ARG002
        """Its own forecasts, those given the true past where it is autoregressive, and the naive ones."""
        tally = ForecastTally(self.cut.season)
        for chunk in chunks:
            contexts, truths = (self.series([row[side] for _, row in chunk]) for side in (0, 1))
            ways = {OWN: self.forecast(contexts)}
            if self.cut.head == "autoregressive":
                ways[GIVEN] = self.forecast(contexts, truths)
            for place, (context, truth) in enumerate(zip(contexts, truths, strict=True)):
                tally.add(context, truth, {how: found[place] for how, found in ways.items()})
        return tally.result()


def as_vectors(values: Tensor) -> Tensor:
    """Numbers (…, F) as vectors of a target, (…, 1 + 2 F): an id before them, and none of them missing."""
    return torch.cat((torch.full_like(values[..., :1], VECTOR), values, torch.zeros_like(values)), -1)


# In training


@dataclass(frozen=True)
class Windows:
    """The windows of the series of a corpus: all, or those to train on or to validate with."""

    files: Files
    cut: ForecastSettings

    def rows(self, names: Sequence[str]) -> Iterator[Row]:  # noqa: ARG002
        for line, context, future in read_windows(self.files.corpus, self.cut, self.files.part):
            yield line, (written(context), written(future))

    def encode(self, encoder: RowEncoder, folder: Path, progress: Progress | None = None) -> Shards:
        rows, part = self.rows(encoder.names), self.files.part
        return prepare_corpus(self.files.corpus, encoder, folder, rows=rows, part=part, progress=progress)


class ForecastTask(Task):
    """A forecaster in training."""

    model: EncoderDecoder
    columns = WindowEncoder.names

    def __init__(
        self, predictor: Forecaster, data: tuple[Examples, Examples], learn: TrainSettings, shown: Pairs
    ) -> None:
        super().__init__(predictor.model, *data, learn, shown)
        self.predictor, self.head = predictor, head_of(predictor.cut)

    @classmethod
    def material(cls, files: Files, settings: Settings) -> Material:
        return Windows(files, settings.forecast)

    @classmethod
    def samples_of(cls, rows: Rows, most: int) -> Pairs:
        """Evenly spaced: the first windows alone are of the oldest days."""
        count = sum(1 for _ in rows.rows(cls.columns))
        return [
            (context, future) for _, (context, future) in islice(rows.rows(cls.columns), 0, None, -(-count // most))
        ]

    @classmethod
    def encoder(cls, run: Run, tokenizers: Tokenizers, train: Rows, valid: Rows) -> RowEncoder:  # noqa: ARG003
        return WindowEncoder(_vectors(tokenizers), run.settings.forecast)

    @classmethod
    def build(cls, run: Run, tokenizers: Tokenizers) -> EncoderDecoder:
        vectors, settings = _vectors(tokenizers), run.settings
        channels, outputs = len(vectors.mean), head_of(settings.forecast).outputs
        read = vectors.size + channels * (settings.forecast.anchor != "none")  # as `Window.read` has it
        return build.forecaster(settings.model, read, 2 * channels, channels * outputs)

    @classmethod
    def open(cls, run: Run, tokenizers: Tokenizers, train: Examples, valid: Examples, held_out: Pairs) -> Self:
        cut, cpu = run.settings.forecast, torch.device("cpu")
        predictor = Forecaster(cls.build(run, tokenizers), _vectors(tokenizers), cut, cpu, run)
        return cls(predictor, (train, valid), run.settings.train, held_out)

    @classmethod
    def load(cls, run: Run, device: torch.device, checkpoint_name: str | None = None) -> Forecaster:
        return open_forecaster(run, str(device), checkpoint_name)

    def write(self, texts: Sequence[str], device: torch.device) -> list[str]:
        """The medians that the model forecasts now."""
        return replace(self.predictor, device=device).read(texts)

    def forward(self, batch: Tensors, *, static: bool = False) -> Tensor:  # noqa: ARG002
        """The loss of the numbers that are known, a mean over channels, summed over moments."""
        source, read = drop_words(batch.source, self.word_dropout), batch.target_in
        if self.predictor.cut.head == "direct":
            read = drop_words(read, 1.0)
        _, state = self.model.start(source)
        features, _ = self.model.advance(read, state, masks.padding(read))
        found = self.predictor.described(self.model.project(features))  # (B, H, F, P)
        truth, missing = batch.target_out[..., 1:].chunk(2, -1)  # (B, H, F)
        real = (missing == 0) & masks.padding(batch.target_out)[..., None]
        return (self.head.loss(found, truth) * real).sum() / self.predictor.channels

    def score(self, device: torch.device, loss: float) -> Scores:
        """The error of its own medians, in percent of that of the naive forecast. Where the loss is the lowest so far,
        the run keeps how much wider intervals would have to be to hold what they say."""
        predictor, run, totals = replace(self.predictor, device=device), self.predictor.run, np.zeros(2)
        contexts, truths = (predictor.series(side) for side in zip(*self.samples, strict=True))
        found = predictor.forecast(contexts)
        for context, truth, each in zip(contexts, truths, found, strict=True):
            guesses = each[..., MEDIAN], naive(context, len(truth), predictor.cut.season)
            totals += [np.nansum(np.abs(truth - guess) / predictor.vectors.deviation) for guess in guesses]
        if run is not None and loss < _calibration(run)[0]:
            with new_file(run.calibration) as file:
                wider = widening(np.stack(truths), np.stack(found))
                file.write(json.dumps({"loss": loss, "widening": wider}).encode())
        share, outputs = float(100 * totals[0] / max(totals[1], 1e-9)), [written(each[..., MEDIAN]) for each in found]
        return Scores(loss, share, "relative error", higher_is_better=False, written=outputs)


def open_forecaster(run: Run, device: str = "cpu", checkpoint_name: str | None = None) -> Forecaster:
    """A trained run, in use."""
    tokenizers, place = Tokenizers.load(run.tokenizer), torch.device(device)
    model = checkpoint.trained(lambda: ForecastTask.build(run, tokenizers), run, place, checkpoint_name)
    return Forecaster(model, _vectors(tokenizers), run.settings.forecast, place, run, _calibration(run)[1])


def _calibration(run: Run) -> tuple[float, float]:
    """The loss where intervals were measured, and what they are widened by."""
    try:
        found = json.loads(run.calibration.read_bytes())
        return float(found["loss"]), float(found["widening"])
    except (OSError, ValueError, TypeError, KeyError):  # there is none, or none that can be read
        return math.inf, 1.0


def _vectors(tokenizers: Tokenizers) -> Vectors:
    assert isinstance(tokenizers.source, Vectors)
    return tokenizers.source
