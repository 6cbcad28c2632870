"""PNG: labels that do not collide when they are really drawn, and letters that no font has are named."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image

from regard.errors import ResourceError
from regard.explain.heatmap import HeatMap
from regard.show.pictures import Grid
from regard.show.png import _drawing, fonts_for, heat_figure, save_png
from regard.show.svg_heatmap import layout

ARABIC = ["أكلت", "القطة", "السوداء", "الفأر،", "لأنها", "كانت", "جائعة"]
LATIN = ["the", "internationalisation", "of", "WWWWWW", "and", "$x_1$", "Donaudampfschifffahrtsgesellschaftskapitän"]


def made(rows: int, columns: int, labels: list[str]) -> HeatMap:
    values = (3 * torch.randn(rows, columns)).softmax(-1).tolist()
    names = [labels[place % len(labels)] for place in range(max(rows, columns))]
    shape = tuple(names[:rows]), tuple(names[:columns]), tuple(map(tuple, values))
    return HeatMap("made up", *shape, "where the numbers come from, in a line that has to be broken", sums=True)


def test_sixty_labels_a_side_do_not_collide_as_drawn() -> None:
    picture = made(60, 60, LATIN + ARABIC)
    with _drawing(picture.rows) as (families, _):
        figure = heat_figure(picture, layout(picture), families)
        figure.canvas.draw()
        axes = figure.axes[0]
        across = [label.get_window_extent() for label in axes.get_xticklabels()]
        down = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert len(across) == len(down) == 60
    assert all(left.x1 <= right.x0 for left, right in pairwise(across))
    assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(down))
    grid, whole = axes.get_window_extent(), figure.bbox
    assert all(box.y0 >= grid.y1 and box.y1 <= whole.y1 for box in across)
    assert all(box.x1 <= grid.x0 and box.x0 >= whole.x0 for box in down)


def test_what_is_drawn_is_what_the_picture_holds() -> None:
    picture = made(5, 7, LATIN)
    with _drawing(picture.rows) as (families, _):
        axes = heat_figure(picture, layout(picture), families).axes[0]
    torch.testing.assert_close(torch.tensor(axes.images[0].get_array().tolist()), torch.tensor(picture.values))
    assert [label.get_text() for label in axes.get_yticklabels()] == list(picture.rows)


def test_files_are_pictures_of_print_quality(tmp_path: Path) -> None:
    assert save_png(made(7, 5, LATIN), tmp_path / "one.png") == ""
    assert save_png(Grid("heads", [[made(7, 5, LATIN)] * 2] * 3), tmp_path / "many.png") == ""
    for name in ("one", "many"):
        with Image.open(tmp_path / f"{name}.png") as image:
            assert image.format == "PNG"
            assert round(image.info["dpi"][0]) == 200
            assert min(image.size) > 300


def test_letters_that_no_font_has_are_named(tmp_path: Path) -> None:
    nobody = "\U0010fffd"  # for private use: nobody draws it
    assert save_png(made(2, 2, ["cat", f"a{nobody}"]), tmp_path / "x.png") == nobody
    assert fonts_for("cat القطة") == (["DejaVu Sans"], "")


def test_without_matplotlib_a_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ResourceError, match=r"PNG: matplotlib is missing; pip install matplotlib"):
        save_png(made(2, 2, LATIN), tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []
