"""One picture of an answer: the fragments of a component, which are placed towards each other and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jigsync.values import z4
from jigsync.values.errors import bad_value
from jigsync.values.gauge import Gauge
from jigsync.values.layout import FREE, Grid, Layout
from jigsync.values.placement import Pitch, turned_pitch


@dataclass(frozen=True)
class Picture:
    """What is known about one component.

    Attributes:
        component: its number.
        layout: the grid of its cells, or free.
        gauge: which side of it is up.
        pitch: of its cells in pixels.
        cells: id -> (row, col) where it has a grid.
        whole: the probability that all its fragments are right and that none of them lies elsewhere in the pile, or
            None when nobody said.
    """

    component: int
    layout: Layout = FREE
    gauge: Gauge = field(default_factory=Gauge)
    pitch: Pitch | None = None
    cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    whole: float | None = None

    def __post_init__(self) -> None:
        if self.whole is not None and not 0.0 <= self.whole <= 1.0:
            raise bad_value("whole", "a picture", "between 0 and 1", self.whole)

    @property
    def grid(self) -> Grid | None:
        """The grid, where it has one."""
        return self.layout if isinstance(self.layout, Grid) else None

    @property
    def empty(self) -> list[tuple[int, int]]:
        """Cells of its grid that no fragment is in."""
        taken = set(self.cells.values())
        return [] if self.grid is None else [cell for cell in self.grid.cells() if cell not in taken]

    def turned(self, turns: int) -> Picture:
        """The same picture after a further global turn."""
        gauge = self.gauge.turned(turns)
        if self.grid is None:
            return replace(self, gauge=gauge)
        cells = {name: z4.turn_cell(cell, self.grid.shape, turns) for name, cell in self.cells.items()}
        return replace(
            self, gauge=gauge, layout=self.grid.turned(turns), pitch=turned_pitch(self.pitch, turns), cells=cells
        )
