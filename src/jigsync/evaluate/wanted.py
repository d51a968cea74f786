"""Which puzzles an evaluation is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from jigsync.cutting.handed import PRESENTATIONS, Presentation
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.tear_options import STYLES, Style, TearOptions
from jigsync.values.errors import bad_value
from jigsync.values.layout import Grid

LARGE: Final = 10
"""Grids of so many rows or cols get cells of SMALL_CELL pixels, so that a canvas of 640 pixels holds them."""
SMALL_CELL: Final = 64
CELL: Final = 128
GAP: Final = "GAP"
"""The severity that puzzles of the GAP data set are listed under."""


@dataclass(frozen=True)
class Wanted:
    """Which puzzles to take.

    Attributes:
        grids, severities: settings; empty takes all there are (of a manifest or GAP).
        puzzles: of every setting; None takes all: of a folder, one a picture.
        cell: cell pitch, and size of torn pieces, in pixels; None goes by the grid.
        turns: turn the fragments; else the solvers are told that nothing is turned.
        split: only pictures of this split, "" for all.
        presentations: how fragments are handed over; empty: "cell", and "any" for torn pieces (all of a manifest).
        pieces, styles: of tears; no pieces: nothing is torn (of a manifest: all are taken); no style: torn paper.
        erosions: of tears, beside the severities', as shares of the size; nothing else is damaged then.
    """

    grids: tuple[Grid, ...] = ()
    severities: tuple[str, ...] = ()
    puzzles: int | None = None
    cell: int | None = None
    turns: bool = True
    split: str = ""
    seed: int = 0
    presentations: tuple[Presentation, ...] = ()
    pieces: tuple[int, ...] = ()
    styles: tuple[Style, ...] = ()
    erosions: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        known = {"severities": (*SEVERITIES, GAP), "presentations": PRESENTATIONS, "styles": STYLES}
        for name, allowed in known.items():
            for value in getattr(self, name):
                if value not in allowed:
                    listed = [one for one in allowed if one != GAP]
                    raise bad_value(name, "an evaluation", f"all or some of {', '.join(listed)}", value)
        for name in ("grids", "severities", "presentations", "pieces", "styles", "erosions"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise bad_value(name, "an evaluation", "different values", ",".join(str(value) for value in values))
        if self.puzzles is not None and self.puzzles < 1:
            raise bad_value("puzzles", "an evaluation", "at least 1", self.puzzles)
        if self.pieces and self.presentations == ("cell",):
            raise bad_value(
                "presentation", "an evaluation of torn pieces", "cropped or any: they have no cells", "cell"
            )
        if self.styles and not self.pieces:
            raise bad_value("styles", "an evaluation", "given with pieces to tear", ",".join(self.styles))
        if self.erosions and not self.pieces:
            raise bad_value("erosions", "an evaluation", "given with pieces to tear", ",".join(map(str, self.erosions)))

    def cell_of(self, grid: Grid) -> int:
        """Cell pitch for a grid: CELL, and SMALL_CELL from LARGE rows or cols on, unless it is given."""
        return self.cell or (SMALL_CELL if max(grid.shape) >= LARGE else CELL)

    @property
    def of_cuts(self) -> tuple[Presentation, ...]:
        """The presentations of cuts."""
        return self.presentations or ("cell",)

    @property
    def tears(self) -> tuple[TearOptions, ...]:
        """What is torn, undamaged."""
        loose: tuple[Presentation, ...] = self.presentations or ("any",)
        return tuple(
            TearOptions(pieces, self.cell or CELL, style, presentation=presentation)
            for style in self.styles or ("tear",)
            for pieces in self.pieces
            for presentation in loose
            if presentation != "cell"
        )

    def worn(self, torn: TearOptions) -> tuple[TearOptions, ...]:
        """The same tear at every erosion that was asked for."""
        return tuple(replace(torn, erosion=erosion) for erosion in self.erosions)

    def takes(self, options: CutOptions | TearOptions, severity: str) -> bool:
        """Is this setting wanted? What is not named is not asked about."""
        if self.severities and severity not in self.severities:
            return False
        if self.presentations and options.presentation not in self.presentations:
            return False
        if isinstance(options, CutOptions):
            return options.grid in self.grids or not (self.grids or self.pieces)
        if self.styles and options.style not in self.styles:
            return False
        return options.pieces in self.pieces or not (self.grids or self.pieces)
