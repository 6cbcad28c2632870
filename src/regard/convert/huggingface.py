"""Folders of the `transformers` library, read without it: Marian (OPUS-MT), M2M-100, NLLB, mBART, BART.

``config.json`` has the architecture, ``model.safetensors`` (or several with an index, or ``pytorch_model.bin``, not
executed) the weights. Ids come from ``vocab.json`` or, with sentencepiece alone, from fairseq's order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.convert.foreign import Foreign, Ids, settled
from regard.convert.names import Family, NamedTensors
from regard.convert.package import Package, read_bytes, read_json, read_text
from regard.convert.pickles import PickledTensors, TorchFile
from regard.convert.tokenizer_json import TOKENIZER, TokenizerJson
from regard.errors import ModelError
from regard.models import build
from regard.models.generator import EncoderDecoder
from regard.nn.embeddings import sinusoid
from regard.runs.checkpoint import load_model
from regard.text.foreign import ByteMergesTokenizer, SentencePieceTokenizer
from regard.text.grafting import recut_targets
from regard.text.subwords import open_model
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vocabulary import END, SPECIAL_TOKENS, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CONFIG: Final = "config.json"
KINDS: Final = ("marian", "pegasus", "m2m_100", "mbart", "bart")
_SENTENCEPIECE = "sentencepiece.bpe.model"
_FIRST = ("<s>", "<pad>", "</s>", "<unk>")  # of fairseq; sentencepiece's own three come before its pieces
_LANGUAGE = re.compile(r">>[\w-]{2,20}<<")
_END = (SPECIAL_TOKENS[END],)
_EXTRA = ("<s>", "<mask>")
_MOST_ADDED = 10_000  # tokens beside a vocabulary


class _SafeTensors:
    """The tensors of one or several safetensors files."""

    def __init__(self, paths: list[Path]) -> None:
        try:
            files: list[Any] = [safe_open(path, framework="pt") for path in paths]
            self.files = {name: file for file in files for name in file.keys()}  # noqa: SIM118
        except SafetensorError as problem:
            raise ModelError(f"{paths[0].parent}: not a safetensors file, or damaged ({problem})") from None
        self.names = list(self.files)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.files[name].get_slice(name).get_shape())

    def tensor(self, name: str) -> Tensor:
        found: Tensor = self.files[name].get_tensor(name)
        return found.float()


class _Loaded:
    """The tensors of a model in memory."""

    def __init__(self, named: Mapping[str, Tensor]) -> None:
        self.named, self.names = named, list(named)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.named[name].shape)

    def tensor(self, name: str) -> Tensor:
        return self.named[name]


def is_model(folder: Path) -> bool:
    """Whether a folder contains such a model, by the names of its files."""
    return (folder / CONFIG).is_file() and any((folder / name).is_file() for name in WEIGHTS)


WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")


def _tensors(folder: Path) -> _SafeTensors | PickledTensors:
    whole, index, pickled = (folder / name for name in WEIGHTS)
    if whole.is_file():
        return _SafeTensors([whole])
    if index.is_file():
        listed = read_json(index).get("weight_map")
        names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
        if not names or any(Path(name).name != name or not (folder / name).is_file() for name in names):
            raise ModelError(f"{index}: names files that are not beside it; is the folder complete?")
        return _SafeTensors([folder / name for name in names])
    content = TorchFile(pickled).content
    if not isinstance(content, dict):
        raise ModelError(f"{pickled}: is not a table of tensors; only such files are read")
    return PickledTensors(content)


def read(package: Package) -> Foreign:
    """Read a folder that ``save_pretrained`` wrote."""
    config = _config(package.folder)
    family = _family(tensors := _tensors(package.folder), str(package.folder), config)
    text = _Text(package, config)
    ids = tuple(text.ids(side, family.shape(family.embedding(side))[0]) for side in ("encoder", "decoder"))
    tokenizers = text.tokenizers(*ids)
    settings = settled(text.package.values(_model(config, family), tokenizers), str(package.folder))
    kind = "pickled" if isinstance(tensors, PickledTensors) else "safetensors"
    origin = text.package.origin(f"Hugging Face {config['model_type']}, {kind}")
    return Foreign(settings, family.weights(*ids), tokenizers, origin)


def from_transformers(model: PreTrainedModel, unknown: int | None = None) -> tuple[EncoderDecoder, Ids, Ids]:
    """A model of `transformers` as ours, with equal logits for equal tokens, and the ids of source and target."""
    config = {**model.config.to_dict(), "model_type": model.config.model_type}
    weights = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
    family = _family(_Loaded(weights), str(config["model_type"]), config)
    sizes = (family.shape(family.embedding(side))[0] for side in ("encoder", "decoder"))
    source, target = (_ids([str(number) for number in range(size)], config, unknown) for size in sizes)
    settings = settled({"model": _model(config, family)}, family.where)
    made = build.encoder_decoder(settings.model, len(source.pieces), len(target.pieces))
    made = made.to(next(model.parameters()).dtype)  # before weights are copied, so that float64 is not rounded
    with torch.no_grad():
        load_model(made, dict(family.weights(source, target)), family.where)
    return made.eval(), source, target


def _config(folder: Path) -> dict[str, Any]:
    config: dict[str, Any] = read_json(folder / CONFIG)
    if (folder / "generation_config.json").is_file():
        config |= {
            name: each for name, each in read_json(folder / "generation_config.json").items() if each is not None
        }
    kind = str(config.get("model_type"))[:40]
    if kind not in KINDS:
        known = ", ".join(KINDS)
        raise ModelError(f"{folder / CONFIG}: model_type = {kind}: not supported; known: {known}")
    return config


def _kept(config: Mapping[str, Any]) -> dict[str, Any]:
    """How embeddings are tied, and whether positions are learned."""
    tied = config.get("tie_word_embeddings", True)
    shared = config["model_type"] != "marian" or config.get("share_encoder_decoder_embeddings", True)
    learned = config["model_type"] in ("bart", "mbart")
    return {"tie": "none" if not tied else "all" if shared else "target", "learned": learned}


def _family(tensors: NamedTensors, where: str, config: Mapping[str, Any]) -> Family:
    """The weights. Marian's positions are computed, unless the file has another table."""
    family, name = Family(tensors, where, **_kept(config)), "encoder.embed_positions.weight"
    if config["model_type"] in ("marian", "pegasus") and name in family.plain:
        places, width = family.shape(name)
        usual = sinusoid(torch.arange(places), width, interleaved=False)
        if not torch.allclose(family.tensor(name).double(), usual.double(), atol=1e-5):
            family.learned, family.first = True, 0
    return family


def _model(config: Mapping[str, Any], family: Family) -> dict[str, Any]:
    kind = config["model_type"]
    before = kind in ("pegasus", "m2m_100", "mbart")
    positions: dict[str, Any] = {"interleaved": False}  # Marian's
    if kind == "m2m_100":
        positions |= {"frequencies": "marian", "first_position": _number(config, "pad_token_id", 1) + 1}
    elif family.learned:
        places = family.shape("encoder.embed_positions.weight")[0] - family.first
        positions = {"positions": "learned", "longest": places}
    return family.settings(config, "activation_function", "relu" if kind == "m2m_100" else "gelu") | {
        "norm_place": "before" if before else "after",
        "embedding_norm": kind in ("bart", "mbart"),
        "embedding_scale": bool(config.get("scale_embedding", kind == "m2m_100")),
        **positions,
    }


def _number(config: Mapping[str, Any], name: str, default: int) -> int:
    """An id of the configuration; of several the first."""
    found = config.get(name)
    found = found[0] if isinstance(found, list) and found else found
    if found is not None and (not isinstance(found, int) or not 0 <= found < 1 << 31):
        raise ModelError(f"{CONFIG}: {name} = {str(found)[:40]}: must be an id")
    return default if found is None else found


def _ids(
    pieces: list[str], config: Mapping[str, Any], unknown: int | None, rows: int = 0, start: int | None = None
) -> Ids:
    """The ids of a side. A configuration does not name ``<unk>``: without a vocabulary it is the first other id."""
    pad, end = _number(config, "pad_token_id", 0), _number(config, "eos_token_id", 0)
    start = _number(config, "decoder_start_token_id", pad) if start is None else start
    if unknown is None:
        unknown = next(number for number in (1, 3, 4, 5) if number not in (pad, start, end))
    return Ids.of(pieces, pad=pad, start=start, end=end, unknown=unknown, rows=rows)


class _Text:
    """The tokenizer files of a folder."""

    def __init__(self, package: Package, config: Mapping[str, Any]) -> None:
        self.folder, self.config = package.folder, config
        self.kind = "marian" if config["model_type"] == "pegasus" else config["model_type"]  # Regard exports it
        self.about = _optional(self.folder / "tokenizer_config.json")
        self.control: list[str] = []
        self.cutter = self._cutter()
        self.vocabularies = {"encoder": self._pieces("vocab.json")}
        target = "target_vocab.json" if (self.folder / "target_vocab.json").is_file() else "vocab.json"
        self.vocabularies["decoder"] = self._pieces(target)
        codes = self._codes(package.languages)
        self.codes = codes
        self.package = Package(package.file, package.name, package.root, package.outer, "-".join(codes))

    def _pieces(self, name: str) -> list[str]:
        """Pieces by their ids: those of a file, then added ones, by their ids or in the order of the list."""
        path = self.folder / name
        if self.cutter and not path.is_file():
            own = self.cutter.pieces
        else:
            own = _numbered(path) if path.is_file() or self.kind in ("marian", "bart") else self._offset()
        table, known = dict(enumerate(own)), set(own)
        for number, token in _added(self.folder):
            if token not in known and len(own) <= number < len(own) + _MOST_ADDED:
                table[number] = token
        known = set(table.values())
        for token in self._additional():
            if token not in known:
                table[max(table) + 1] = token
        pieces = [table.get(number, f"<unused {number}>") for number in range(max(table, default=-1) + 1)]
        named = (token for _, token in _added(self.folder) if token in known and token not in _FIRST)
        languages = filter(_LANGUAGE.fullmatch, own) if self.kind == "marian" else (*pieces[len(own) :], *named)
        self.control = [*dict.fromkeys((*self.control, *languages, *(each for each in _EXTRA if each in known)))]
        return pieces

    def _cutter(self) -> TokenizerJson | None:
        """``tokenizer.json`` of newer folders, unless the files that it was made from are there, too."""
        made_of = {"marian": "source.spm", "bart": "merges.txt"}.get(self.kind, _SENTENCEPIECE)
        there = (self.folder / TOKENIZER).is_file() and not (self.folder / made_of).is_file()
        return TokenizerJson(self.folder) if there else None

    def _offset(self) -> list[str]:
        """Pieces from sentencepiece alone: fairseq's four special tokens, then its pieces without its own three."""
        processor = open_model(read_bytes(self.folder / _SENTENCEPIECE))
        return [*_FIRST, *(processor.id_to_piece(number) for number in range(3, processor.get_piece_size()))]

    def _additional(self) -> list[str]:
        """The language tokens, in the order of their ids."""
        maps = self.about, _optional(self.folder / "special_tokens_map.json")
        names = ("additional_special_tokens", "extra_special_tokens")
        lists = [each[name] for each in maps for name in names if isinstance(each.get(name), list)]
        tokens = (each.get("content") if isinstance(each, dict) else each for each in (lists[0] if lists else ()))
        return [token for token in tokens if isinstance(token, str)][:_MOST_ADDED]

    def _codes(self, given: str) -> tuple[str, ...]:
        """Source and target language, which must be given for a model with many."""
        many = [token for token in self.control if token not in (*_EXTRA, *SPECIAL_TOKENS)]
        if not many:
            said = (str(self.about.get("source_lang") or ""), str(self.about.get("target_lang") or ""))
            return tuple(given.split("-", 1)) if given else said if all(said) else ()
        known = {self._plain(token): token for token in many}
        places = [place for place, letter in enumerate(given) if letter == "-"]
        for place in places:
            source, target = given[:place], given[place + 1 :]
            if target in known and (source in known or self.kind == "marian"):
                return source, target
        some = ", ".join(sorted(known)[:8])
        raise ModelError(
            f"{self.folder}: has {len(known)} languages; choose two with --languages SOURCE-TARGET; known: {some}, …"
        )

    @staticmethod
    def _plain(token: str) -> str:
        return token.strip("<>_") if token.startswith((">>", "__")) else token

    def _token(self, code: str) -> str:
        return next((token for token in self.control if self._plain(token) == code), "")

    def ids(self, side: str, rows: int) -> Ids:
        pieces, start = self.vocabularies[side], None
        if self._starts_with_language() and self.codes:
            start = self.vocabularies["decoder"].index(self._token(self.codes[1]))
        unknown = pieces.index("<unk>") if "<unk>" in pieces else None
        if len(pieces) > rows:
            raise ModelError(
                f"{self.folder}: vocabulary = {len(pieces):,} pieces: the model has {rows:,} rows for them"
            )
        return _ids(pieces, self.config, unknown, rows, start)

    def _starts_with_language(self) -> bool:
        """Whether outputs start with a language, as in mBART-25; in mBART-50 they start with ``</s>``."""
        return self.kind == "mbart" and self.about.get("tokenizer_class", "") in (
            "MBartTokenizer",
            "MBartTokenizerFast",
        )

    def frame(self, target: Ids) -> Frame:
        if self.kind == "bart":
            forced = self.config.get("forced_bos_token_id")
            begin = ("<s>",) if forced is not None and "<s>" in target.pieces else ()
            return Frame(before=("<s>",), after=_END, begin=begin)
        if not self.codes or not self._token(self.codes[1]):
            return Frame()
        source, written = (self._token(code) for code in self.codes)
        if self.kind == "marian":
            return Frame(before=(written,))
        if self._starts_with_language():
            return Frame(after=(*_END, source))
        return Frame(before=(source,), after=_END, begin=(written,))

    def tokenizers(self, source: Ids, target: Ids) -> Tokenizers:
        control, folder = tuple(self.control), self.folder
        vocabularies = [Vocabulary(each.pieces) for each in (source, target)]
        frame = self.frame(target)
        if self.kind == "bart":
            codes = self.cutter.merges() if self.cutter else read_text(folder / "merges.txt")
            both = ByteMergesTokenizer(vocabularies[0], control, codes=codes)
            return Tokenizers(both, both, frame=frame)
        names = ("source.spm", "target.spm") if self.kind == "marian" else (_SENTENCEPIECE, _SENTENCEPIECE)
        models = [self.cutter.sentencepiece()] * 2 if self.cutter else [read_bytes(folder / name) for name in names]
        one, other = (
            SentencePieceTokenizer(vocabulary, control, model=model)
            for vocabulary, model in zip(vocabularies, models, strict=True)
        )
        alike = models[0] == models[1] and vocabularies[0] == vocabularies[1]
        return recut_targets(Tokenizers(one, one if alike else other, frame=frame))


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _numbered(path: Path) -> list[str]:
    """The pieces of a JSON file that gives each its id."""
    found = read_json(path)
    wrong = next((each for each in found.values() if type(each) is not int), None)
    by_id = {number: piece for piece, number in found.items() if type(number) is int}
    if wrong is not None or sorted(by_id) != list(range(len(by_id))):
        raise ModelError(f"{path}: does not number its pieces consecutively; is the file damaged?")
    return [by_id[number] for number in range(len(by_id))]


def _added(folder: Path) -> list[tuple[int, str]]:
    """Tokens that were added to a vocabulary, with their ids."""
    listed = _optional(folder / TOKENIZER).get("added_tokens")
    decoder = _optional(folder / "tokenizer_config.json").get("added_tokens_decoder")
    found: list[tuple[object, object]] = [
        (number, token) for token, number in _optional(folder / "added_tokens.json").items()
    ]
    found += [(each.get("id"), each.get("content")) for each in listed or () if isinstance(each, dict)]
    if isinstance(decoder, dict):
        found += [(number, each.get("content")) for number, each in decoder.items() if isinstance(each, dict)]
    return sorted(
        {(int(str(n)), token) for n, token in found if re.fullmatch(r"\d{1,9}", str(n)) and isinstance(token, str)}
    )
