"""English letters to katakana: the weights of the package `e2k` (public domain) as a run that can be looked into.

pip download --no-deps e2k==0.8.1 && unzip e2k-0.8.1-py3-none-any.whl
python examples/e2k.py e2k/models/model-c2k.safetensors runs/e2k && regard explain runs/e2k "regard"
"""

from __future__ import annotations

import sys
from pathlib import Path

from safetensors import safe_open

import regard
from regard.convert.foreign import Foreign, Ids, write
from regard.runs.folder import Origin
from regard.text.tokenizers import Frame, Tokenizers
from regard.text.vocabulary import Vocabulary
from regard.text.words import CharacterTokenizer

NAMES = {"encoder_fc.0": "encoder.annotate", "attn.out_proj": "decoder.attention.projections.output"}
NAMES |= {"encoder": "encoder.stack.layers.0.kernel", "pre_decoder": "decoder.stack.layers.0.kernel"}
NAMES |= {"post_decoder": "decoder.second.kernel"}
MODEL = ("model.bidirectional=true", "model.bridge=zero", "model.annotations=dense", "model.embedding_scale=false")
DECODER = "model.decoder={kind='conditional', second='layer', attention={score='scaled_dot', heads=4, projected=true}}"


def main(file: Path, out: Path) -> None:
    with safe_open(file, "pt") as tensors:
        theirs, about = {name: tensors.get_tensor(name) for name in tensors.keys()}, tensors.metadata()  # noqa: SIM118
    tables = (about[name].split("\0") for name in ("in_table", "out_table"))
    source, target = (Ids.of(table, pad=0, start=1, end=2, unknown=None) for table in tables)
    weights = {"encoder.embedding.weight": source.rows(theirs.pop("e_emb.weight"))}
    weights["decoder.embedding.weight"] = target.rows(theirs.pop("k_emb.weight"))
    weights["decoder.output.weight"] = target.rows(theirs.pop("fc.weight"))
    weights["decoder.output.bias"] = target.bias(theirs.pop("fc.bias").float())
    for kind in ("weight", "bias"):
        for name, part in zip(("query", "key", "value"), theirs.pop(f"attn.in_proj_{kind}").chunk(3), strict=True):
            weights[f"decoder.attention.projections.{name}.{kind}"] = part
    weights |= {f"{NAMES[name.rpartition('.')[0]]}.{name.rpartition('.')[2]}": theirs[name] for name in theirs}
    size = len(theirs["encoder_fc.0.bias"])
    sizes = f"model.width={size}", f"model.hidden={size}"
    settings = regard.load_settings("gru", *MODEL, *sizes, DECODER, "text.tokenizer=character", "data.languages=en-ja")
    letters, kana = (CharacterTokenizer(Vocabulary(side.pieces)) for side in (source, target))
    tokenizers = Tokenizers(letters, kana, frame=Frame(before=("<start>",)))
    write(Foreign(settings, weights.items(), tokenizers, Origin("e2k", file.stem, "Unlicense")), out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
