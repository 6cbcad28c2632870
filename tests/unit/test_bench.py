"""The parts of the benchmarks that can be wrong without anybody noticing: what is counted, and what is told of it."""

from __future__ import annotations

import json
import random
import zipfile
from argparse import Namespace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from torch.utils.flop_counter import FlopCounterMode

import regard
from benches import scripts

SIZES = {
    "vocabulary": 53,
    "width": 12,
    "depth": 2,
    "heads": 3,
    "hidden": 31,
    "dropout": 0.0,
    "smoothing": 0.1,
    "rate": 1e-3,
    "clip": 1.0,
    "threads": 1,
}


@pytest.fixture(scope="module")
def bench() -> dict[str, ModuleType]:
    """The files of bench/ and docs/ as they import each other."""
    names = (
        *("cost", "ledger", "measurements", "peers.protocol", "peers.regard", "step_profile", "training"),
        *("bulk", "faults", "lock", "mutations", "release", "teaching"),
    )
    return dict(zip(names, scripts(*names), strict=True))


def batch(bench: dict[str, ModuleType], rows: int = 3, source: int = 7, target: int = 5) -> object:
    """Rows without padding."""
    chance = np.random.default_rng(0)
    sides = [chance.integers(4, 53, (rows, length)) for length in (source, target)]
    return bench["peers.protocol"].as_batch(sides[0], sides[1], sides[1])


def test_the_operations_counted_on_paper_are_those_that_torch_counts(bench: dict[str, ModuleType]) -> None:
    work = bench["peers.protocol"].Work(model="transformer", **SIZES)
    given = batch(bench)
    made = bench["peers.regard"].make_model(work).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        made(given.source, given.target_in)
    counts = counter.get_flop_counts()["Global"].items()
    found = sum(count for kernel, count in counts if not any(word in str(kernel) for word in ("attention", "bmm")))
    assert sum(product.operations for product in bench["cost"].products(work, given)) == pytest.approx(found)


@pytest.mark.parametrize("model", ["bahdanau", "luong"])
def test_a_recurrent_model_uses_each_weight_once_a_token(bench: dict[str, ModuleType], model: str) -> None:
    """Torch does not count inside its recurrent kernels: here the weights are counted, on the side they belong to."""
    work = bench["peers.protocol"].Work(model=model, **SIZES | {"depth": 1})
    given = batch(bench)
    weights = {
        name: parameter.numel()
        for name, parameter in bench["peers.regard"].make_model(work).named_parameters()
        if parameter.dim() > 1 and not name.endswith(("embedding.weight", "score.combine", "score.bias"))
    }
    keys = ("encoder.", "decoder.attention.score.key_weight", "decoder.attention.score.weight")
    source = sum(count for name, count in weights.items() if name.startswith(keys))
    expected = 2 * (source * given.source.numel() + (sum(weights.values()) - source) * given.target_out.numel())
    assert sum(product.operations for product in bench["cost"].products(work, given)) == pytest.approx(expected)


def test_padding_is_not_counted_as_work(bench: dict[str, ModuleType]) -> None:
    work = bench["peers.protocol"].Work(model="transformer", **SIZES)
    given = batch(bench)
    sides = [np.pad(side.numpy(), ((0, 0), (0, 11))) for side in (given.source, given.target_in, given.target_out)]
    padded = bench["peers.protocol"].as_batch(*sides)
    count = bench["cost"].operations_per_token
    assert padded.tokens == given.tokens
    assert count(work, [padded]) == count(work, [given])


@pytest.mark.parametrize("model", ["transformer", "bahdanau", "luong"])
def test_a_contestant_learns(bench: dict[str, ModuleType], model: str) -> None:
    torch.manual_seed(0)
    work = bench["peers.protocol"].Work(model=model, **SIZES | {"rate": 0.02})
    contestant = bench["peers.regard"].Regard(work)
    given = batch(bench)
    losses = [bench["peers.protocol"].measure(contestant, [given])["loss"] for _ in range(7)]
    assert losses[0] == pytest.approx(np.log(53), abs=1.5)
    assert losses[-1] < losses[0]


def test_speed_is_the_median_and_a_share_is_of_the_same_round(bench: dict[str, ModuleType]) -> None:
    taken = [
        {"tokens": 100, "seconds": seconds, "cpu_seconds": 2.0, "loss": 1.0, "peak_mib": 7.0} for seconds in (1, 2, 4)
    ]
    matrix = [{"best": 100.0 * slow, "model": 50.0 * slow} for slow in (4, 2, 1)]  # the machine was slower and slower
    found = bench["training"].summary({"loss": 3.0}, taken, matrix, operations=2.0)
    assert (found["tokens_per_second"], found["spread"], found["tokens_per_cpu_second"]) == (50, [25, 100], 50)
    assert (found["share_of_peak"], found["share_of_model_rate"]) == (0.5, 1.0)


def test_a_power_has_its_exponent(bench: dict[str, ModuleType]) -> None:
    assert bench["ledger"].exponent([2, 3, 7], [5 * n**1.5 for n in (2, 3, 7)]) == pytest.approx(1.5)


def test_a_line_of_the_ledger_says_when_where_and_how(bench: dict[str, ModuleType], tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    bench["ledger"].enter("some", {"figure": 3}, "python bench/some.py /home/me/run --to=/home/x.html a/b", ledger)
    line = json.loads(ledger.read_text(encoding="utf-8"))
    assert line["figure"] == 3
    assert line["command"] == "python bench/some.py run --to=x.html a/b"
    assert "CPU cores" in line["device"]


def test_a_kernel_has_one_kind(bench: dict[str, ModuleType]) -> None:
    kind = bench["step_profile"].kind_of
    assert kind("aten::addmm") == "matrix products"
    assert kind("aten::_fused_adam_") == "optimizer and clipping"
    assert kind("aten::add_") == "element by element"
    assert kind("aten::unheard_of") == "rest"


def line(**fields: object) -> dict[str, object]:
    common = {"bench": "gpu-training", "date": "2026-01-02", "device": "a GPU", "model": "m", "batch_tokens": 8192}
    return common | {"contestant": "regard", "tokens_per_second": 1000, "command": "make it"} | fields


def test_a_page_has_sections_only_for_what_was_measured(bench: dict[str, ModuleType]) -> None:
    pages = bench["measurements"]
    assert "## " not in pages.page([])
    page = pages.page([line(), line(contestant="other", unforeseen=7)])
    assert [row for row in page.splitlines() if row.startswith("## ")] == ["## Training on a GPU"]
    assert "unforeseen" in page
    assert "`make it` (a GPU, 2026-01-02)" in page


def test_a_signature_makes_no_columns_and_ranges_stay_apart(bench: dict[str, ModuleType]) -> None:
    table = bench["measurements"].table
    made = table([line(signature="nrefs:1|case:mixed"), line(contestant="other", spread=[[1, 2], [3, 4]])])
    assert "nrefs:1\\|case:mixed" in made
    assert "1–2, 3–4" in made


def test_a_later_measurement_takes_the_place_of_an_earlier_one(bench: dict[str, ModuleType]) -> None:
    newest = bench["measurements"].newest
    keys = ("model", "batch_tokens", "contestant")
    assert newest([line(tokens_per_second=1), line(tokens_per_second=2)], *keys) == [line(tokens_per_second=2)]
    lines = [line(run="a"), line(run="a", contestant="other"), line(run="b")]
    assert newest(lines, "model") == [line(run="b")]
    assert newest(lines[:2], "model") == lines[:2]


def test_a_picture_stands_alone_and_shows_every_contestant(bench: dict[str, ModuleType]) -> None:
    made = bench["measurements"].figures([line(), line(contestant="other", spread=[900, 1100])])
    (svg,) = made.values()
    assert svg.startswith("<svg")
    assert 'xmlns="http://www.w3.org/2000/svg"' in svg
    assert "regard" in svg
    assert "other" in svg
    assert list(made) == ["gpu-training-m-8192.svg"]


@pytest.mark.parametrize(
    ("contestants", "vectors", "name"),
    [
        (["regard", "opennmt"], "all", "cpu-training"),
        (["regard", "opennmt"], "avx2", "cpu-training-avx2"),
        (["regard, divided", "regard, undivided"], "all", "cpu-threads"),
    ],
)
def test_races_that_are_no_rivals_have_names_of_their_own(
    bench: dict[str, ModuleType], contestants: list[str], vectors: str, name: str
) -> None:
    assert bench["training"].kind(Namespace(contestants=contestants, vectors=vectors)) == name
    assert name in {section[0] for section in bench["measurements"].SECTIONS}


def test_a_case_is_the_same_whenever_it_is_tried_again(bench: dict[str, ModuleType]) -> None:
    mutations, faults = bench["mutations"], bench["faults"]
    data = json.dumps({"a": [1, {"b": "x"}], "c": 2}).encode()
    for change in (mutations.mutate, mutations.mutate_json, mutations.mutate_toml):
        first, again = ([change(data, random.Random(f"7/{number}")) for number in range(50)] for _ in range(2))
        assert first == again
        assert len(set(first)) > 10
    tensors = save({"a": torch.ones(2, 3), "b": torch.ones(1, dtype=torch.long)})
    numbers = [mutations.mutate_numbers(tensors, random.Random(f"7/{number}")) for number in range(50)]
    assert all(load(each)["a"].shape == (2, 3) for each in numbers)
    assert len(set(numbers)) > 10
    assert [faults.kind_of(number, 1) for number in range(500)] == [faults.kind_of(number, 1) for number in range(500)]
    assert {faults.kind_of(number, 1) for number in range(6000)} == {*faults.SHARES, *faults.RARE}


def test_memory_is_noted_for_every_tenth(bench: dict[str, ModuleType]) -> None:
    assert bench["bulk"].tenths([*range(20), 3]) == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19]
    assert bench["bulk"].tenths([5]) == [0] * 9 + [5]


def test_a_killer_kills_as_often_as_asked_and_not_before_its_time(
    bench: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, killed = [100.0], list[int]()
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("os.kill", lambda process, _: killed.append(process))
    kill = bench["bulk"].Killer(random.Random(0), 2)
    kill([7])
    assert not killed
    for _ in range(5):
        now[0] += bench["bulk"].PAUSES[1]
        kill([])
        assert len(killed) == kill.done
        kill([7])
    assert killed == [7, 7]


def test_a_lock_has_the_hashes_of_every_file_of_a_version_and_leaves_torch_out(bench: dict[str, ModuleType]) -> None:
    files = ("a_b-1.2.0-py3-none-any.whl", "a-b-1.2.0.tar.gz", "a_b-1.2.0.1.tar.gz", "a_b-1.2.tar.gz")
    page = "".join(f'<a href="https://x/{name}#sha256={place:064x}">' for place, name in enumerate(files))
    made = bench["lock"].written({"a-b": "1.2.0", "torch": "2.13.0+cpu"}, {"a-b": page})
    assert made.endswith(f"a-b==1.2.0 \\\n    --hash=sha256:{0:064x} \\\n    --hash=sha256:{1:064x}\n")
    assert "pip install torch==2.13.0\n" in made
    with pytest.raises(SystemExit, match="the index has no file of it"):
        bench["lock"].written({"a-b": "3.0", "torch": "2"}, {"a-b": page})


CATALOGUE = """msgid ""
msgstr "Language: zh\\n"

#, python-format
msgid "Enter a valid “%(name)s”."
msgstr ""
"输入有效的"
"“%(name)s”。"

#, fuzzy
msgid "Not sure of this"
msgstr "不确定"

msgid "%d day ago"
msgid_plural "%d days ago"
msgstr[0] "%d 天前"
"""
PAGE = """<page xmlns="http://projectmallard.org/1.0/">
<info><credit><name>{0}</name></credit><desc>{0} one</desc></info>
<title>{0} two</title><p>{0} <gui>three</gui> four</p><list><item><p>{0} five</p></item></list></page>"""


def test_the_pairs_to_teach_are_read_from_what_programs_say(bench: dict[str, ModuleType], tmp_path: Path) -> None:
    """Message catalogues in a wheel, and help pages of the same structure; a text of both is not learned."""
    teaching = bench["teaching"]
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as wheel:
        wheel.writestr("some/locale/zh_Hans/LC_MESSAGES/django.po", CATALOGUE)
    for locale, word in (("C", "first and"), ("zh_CN", "首先")):
        (tmp_path / "help" / locale).mkdir(parents=True)
        (tmp_path / "help" / locale / "one.page").write_text(PAGE.format(word), encoding="utf-8")
    teaching.prepare([tmp_path / "help"], [tmp_path / "some.whl"], ["zh_CN", "zh_Hans"], tmp_path / "out")
    assert teaching.rows(tmp_path / "out" / "general.test.tsv") == [
        ("输入有效的“%(name)s”。", "Enter a valid “%(name)s”.")
    ]
    assert sorted(teaching.rows(tmp_path / "out" / "domain.test.tsv")) == [
        ("首先 five", "first and five"),
        ("首先 one", "first and one"),
        ("首先 three four", "first and three four"),
        ("首先 two", "first and two"),
    ]


def test_a_wheel_that_is_no_release_is_refused(
    bench: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = bench["release"]
    metadata = f"Metadata-Version: 2.4\nName: regard\nVersion: {regard.__version__}\n"

    def wheel(*names: str) -> Path:
        path = tmp_path / "regard.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("regard-0.dist-info/METADATA", metadata)
            for name in names:
                archive.writestr(name, "x")
        return path

    whole = [f"regard/{name}" for name in release.NEEDED]
    assert f"version {regard.__version__}" in release.check(wheel(*whole))
    for names, complaint in (
        (whole[1:], "has no demo/best"),
        ([*whole, "regard/__pycache__/a.pyc"], "which nobody needs"),
        ([*whole, "tests/test_a.py"], "which nobody needs"),
    ):
        with pytest.raises(release.NotReadyError, match=complaint):
            release.check(wheel(*names))
    monkeypatch.setattr(release, "LARGEST", 100)
    with pytest.raises(release.NotReadyError, match="100 at the most"):
        release.check(wheel(*whole))
