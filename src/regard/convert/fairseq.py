"""fairseq's checkpoints: ``checkpoint_best.pt`` with ``dict.XX.txt``, one for each language, and the merges.

Special tokens are 0 ``<s>``, 1 ``<pad>``, 2 ``</s>``, 3 ``<unk>``; then come the words of the dictionary. An output
starts with ``</s>``. Positions begin with 2, because they are counted from the padding's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from regard.convert.foreign import Foreign, Ids, settled
from regard.convert.names import Family
from regard.convert.package import Package, read_bytes, tokenizers_of
from regard.convert.pickles import Inert, LazyTensor, PickledTensors, TorchFile
from regard.errors import ModelError
from regard.text.foreign import read_dictionary

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_PAD, _END, _UNKNOWN = 1, 2, 3
_IGNORED = tuple(f"{side}.{name}" for side in ("encoder", "decoder") for name in ("version",))
_MOST_CODES = 16  # dictionaries compared at the most
_KINDS: Final = ("transformer", "bart", "mbart")  # what the architecture's name begins with


def read(package: Package) -> Foreign:
    """Read a checkpoint with its dictionaries beside it, or in a folder ``data`` or ``data-bin`` near it."""
    where = str(package.file)
    file = TorchFile(package.file)
    tensors, config = _tensors(file), _config(file)
    tie = "target" if config.get("share_decoder_input_output_embed") else "none"
    tie = "all" if config.get("share_all_embeddings") else tie
    learned = bool(config.get("encoder_learned_pos"))
    family = Family(tensors, where, tie=tie, learned=learned, ignored=_IGNORED)
    if learned != bool(config.get("decoder_learned_pos")):
        raise ModelError(f"{where}: decoder_learned_pos: differs from the encoder's; must be the same")
    codes = _languages(package, config, family)
    words = [_dictionary(package, code) for code in codes]
    ids = [_ids(each, family, side) for each, side in zip(words, ("encoder", "decoder"), strict=True)]
    named = Package(package.file, package.name, _data(package), package.outer, "-".join(codes))
    tokenizers = tokenizers_of(named, ids[0].pieces, ids[1].pieces, joint=words[0] == words[1])
    settings = settled(named.values(_settings(config, family, where), tokenizers), where)
    return Foreign(settings, family.weights(*ids), tokenizers, named.origin("fairseq"))


def _tensors(file: TorchFile) -> PickledTensors:
    model = file.content.get("model") if isinstance(file.content, dict) else None
    if not isinstance(model, dict) or not all(isinstance(each, LazyTensor) for each in model.values()):
        raise ModelError(f"{file.path}: contains no model; a checkpoint of fairseq does")
    return PickledTensors(model)


def _config(file: TorchFile) -> Mapping[str, Any]:
    """The architecture, which newer versions keep in a nested table."""
    content = file.content
    assert isinstance(content, dict)
    found = content.get("args")
    if found is None and isinstance(tables := content.get("cfg"), dict):
        found = tables.get("model")
    found = found.state if isinstance(found, Inert) else found
    if not isinstance(found, dict) or not str(found.get("arch", found.get("_name", ""))).startswith(_KINDS):
        raise ModelError(f"{file.path}: contains no Transformer (args.arch); only those are read")
    return found


def _settings(config: Mapping[str, Any], family: Family, where: str) -> dict[str, Any]:
    before = {bool(config.get(f"{side}_normalize_before")) for side in ("encoder", "decoder")}
    if len(before) > 1:
        raise ModelError(f"{where}: decoder_normalize_before: differs from the encoder's; must be the same")
    first = before.pop()
    final = "encoder.layer_norm.weight" in family.plain
    positions: dict[str, Any] = {"frequencies": "marian", "interleaved": False, "first_position": 2}
    if family.learned:
        positions = {"positions": "learned", "longest": family.shape("encoder.embed_positions.weight")[0] - 2}
    elif config.get("no_token_positional_embeddings"):
        positions = {"positions": "none"}
    return family.settings(config, "activation_fn", "relu") | {
        "norm_place": "before" if first else "after",
        "final_norm": "auto" if final == first else "yes" if final else "no",
        "embedding_norm": "encoder.layernorm_embedding.weight" in family.plain,
        "embedding_scale": not config.get("no_scale_embedding"),
        **positions,
    }


def _places(file: Path) -> list[Path]:
    """The folders that contain dictionaries."""
    folder = file.parent
    places = (folder, *(around / name for around in (folder, folder.parent) for name in ("data", "data-bin")))
    return [place for place in places if place.is_dir() and any(place.glob("dict.*.txt"))]


def has_dictionaries(file: Path) -> bool:
    """Whether there are dictionaries near a file, as for a checkpoint of fairseq."""
    return bool(_places(file))


def _data(package: Package) -> Path:
    """The folder of the dictionaries."""
    return _places(package.file)[0]


def _languages(package: Package, config: Mapping[str, Any], family: Family) -> tuple[str, str]:
    """Source and target: given, named by the checkpoint, or the only two dictionaries whose sizes fit."""
    if package.languages.count("-") == 1:
        source, target = package.languages.split("-")
        return source, target
    said = config.get("source_lang"), config.get("target_lang")
    if all(isinstance(each, str) and each for each in said):
        return str(said[0]), str(said[1])
    codes = sorted(path.name.split(".", 1)[1].removesuffix(".txt") for path in _data(package).glob("dict.*.txt"))
    rows = [family.shape(family.embedding(side))[0] for side in ("encoder", "decoder")]
    sizes = {code: len(_dictionary(package, code)) for code in codes[:_MOST_CODES]}
    pairs = ((one, other) for one in sizes for other in sizes)
    fitting = [pair for pair in pairs if [_padded(sizes[each]) for each in pair] == rows]
    if len(fitting) == 1:
        return fitting[0]
    raise ModelError(
        f"{package.file}: does not say which language is which; choose with --languages, for example "
        f"{'-'.join(codes[:2])}"
    )


def _padded(size: int) -> int:
    """The size of a padded dictionary, a multiple of eight."""
    return -(-size // 8) * 8


def _dictionary(package: Package, code: str) -> tuple[str, ...]:
    path = _data(package) / f"dict.{code}.txt"
    if path.parent != _data(package):
        raise ModelError(f"{package.file}: language = {code[:40]!r}: is not the name of a dictionary")
    return (*_SPECIAL, *read_dictionary(read_bytes(path), str(path)))


def _ids(words: tuple[str, ...], family: Family, side: str) -> Ids:
    rows = family.shape(family.embedding(side))[0]
    if len(words) > rows:
        raise ModelError(
            f"{family.where}: {side}.embed_tokens = {rows:,} rows: the dictionary has {len(words):,} words"
        )
    return Ids.of(words, pad=_PAD, start=_END, end=_END, unknown=_UNKNOWN, rows=rows)
