"""Straight cuts: lines across the whole picture while they leave no slivers, then chords of the largest piece.

Pieces are convex polygons over shared, snapped vertices: where a chord ends on an edge, the piece across the edge gets
the new vertex too, so that both sides of every seam are the same segments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from jigsync.cutting.masks import covered
from jigsync.cutting.pieces import Pieces, covered_pieces
from jigsync.cutting.raster import SNAP

TRIES: Final = 48
"""Lines across the picture that are drawn until one leaves only pieces that are large and plump enough."""
ACROSS: Final = 0.75
"""Share of the pieces that lines across the picture may make; chords of the largest ones even out the rest."""
SMALLEST: Final = 0.4
"""Of the mean area."""
PLUMP: Final = 0.15
"""Area over squared diameter: 0.5 for a square, 0.43 for a triangle of equal sides."""
CHORDS: Final = 6
"""Chords of a piece that are drawn; the one with the best worse half is cut."""
CLEAR: Final = 1.0
"""Pixels that a cut keeps from every vertex."""
MIDDLE: Final = 0.2
"""A chord passes a piece's centre within this share of the way to a vertex."""

T = TypeVar("T")
Point = tuple[float, float]
"""(x, y). Polygons have few corners: plain floats are faster here than arrays."""
Line = tuple[Point, Point]
"""A point of it and its unit direction."""
Polygon = list[int]
"""Vertex numbers, clockwise as displayed."""
Halves = tuple[list[Point], list[Point]]


def cut_straight(shape: tuple[int, int], count: int, rng: np.random.Generator) -> Pieces:
    """Divides a picture of `shape` (rows, columns) into convex polygons of about the same area."""
    sheet = _Sheet.of(shape)
    mean = shape[0] * shape[1] / count
    while len(sheet.polygons) < count and _cut_across(sheet, shape, count, mean, rng):
        pass
    areas = [_area(sheet.points(n)) for n in range(len(sheet.polygons))]
    while len(areas) < count:
        largest = max(range(len(areas)), key=areas.__getitem__)
        sheet.cut([largest], _chord(sheet, largest, rng))
        areas[largest] = _area(sheet.points(largest))
        areas.append(_area(sheet.points(len(areas))))
    return covered_pieces([covered(np.array(sheet.points(n))) for n in range(count)], shape)


def _cut_across(sheet: _Sheet, shape: tuple[int, int], count: int, mean: float, rng: np.random.Generator) -> bool:
    """Cuts along a line across the picture; False when none was found that leaves good pieces."""
    for _ in range(TRIES):
        y, x = rng.random(2) * shape
        line = _line((float(x), float(y)), rng)
        struck = sheet.struck(line)
        if len(sheet.polygons) + len(struck) > ACROSS * count:
            continue
        if all(_good(sheet.halves(n, line), mean) for n in struck):
            sheet.cut(struck, line)
            return True
    return False


def _good(halves: Halves | None, mean: float) -> bool:
    return halves is not None and all(_area(h) >= SMALLEST * mean and _plump(h) >= PLUMP for h in halves)


def _chord(sheet: _Sheet, number: int, rng: np.random.Generator) -> Line:
    """A line near the middle of a piece that leaves two large and plump halves."""
    points = sheet.points(number)
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    best: tuple[float, Line] | None = None
    tried = 0
    while tried < CHORDS or best is None:
        tried += 1
        corner = points[int(rng.integers(len(points)))]
        line = _line((x + (corner[0] - x) * MIDDLE, y + (corner[1] - y) * MIDDLE), rng)
        halves = sheet.halves(number, line)
        if halves is not None:
            worst = min(_plump(half) * _area(half) for half in halves)
            if best is None or worst > best[0]:
                best = worst, line
    return best[1]


def _line(point: Point, rng: np.random.Generator) -> Line:
    angle = float(rng.uniform(0.0, math.pi))
    return point, (math.cos(angle), math.sin(angle))


def _area(points: list[Point]) -> float:
    return abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in _edges(points))) / 2


def _plump(points: list[Point]) -> float:
    return _area(points) / max(math.dist(a, b) for a in points for b in points) ** 2


@dataclass
class _Sheet:
    """Polygons over shared vertices. `owner` says whose edge a -> b is: one polygon's, and b -> a its neighbour's."""

    vertices: list[Point]
    polygons: list[Polygon] = field(default_factory=list)
    owner: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, shape: tuple[int, int]) -> _Sheet:
        """One polygon: the whole picture."""
        height, width = (float(side) for side in shape)
        sheet = cls([(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)])
        sheet._put(0, [0, 1, 2, 3])
        return sheet

    def points(self, number: int) -> list[Point]:
        """A polygon's corners."""
        return [self.vertices[k] for k in self.polygons[number]]

    def struck(self, line: Line) -> list[int]:
        """The polygons that the line meets or nearly touches."""
        sides = [_side(point, line) for point in self.vertices]
        spans = ([sides[k] for k in polygon] for polygon in self.polygons)
        return [n for n, span in enumerate(spans) if min(span) < CLEAR and max(span) > -CLEAR]

    def halves(self, number: int, line: Line) -> Halves | None:
        """What a line would make of a polygon; None when it misses it or comes too near to a vertex."""
        points, places = self.points(number), self._crossed(number, line)
        if len(places) != 2 or min(abs(_side(point, line)) for point in points) < CLEAR:
            return None
        i, j = places
        v, w = (self._meets(*self._edge(number, k), line) for k in places)
        return [v, *points[i + 1 : j + 1], w], [w, *points[j + 1 :], *points[: i + 1], v]

    def cut(self, numbers: Iterable[int], line: Line) -> None:
        """Cuts polygons in two; `halves` must not be None for any of them."""
        cuts = {number: self._crossed(number, line) for number in numbers}
        new: dict[tuple[int, int], int] = {}
        for number, places in cuts.items():
            for a, b in [self._edge(number, k) for k in places]:
                if (b, a) in new:
                    new[a, b] = new[b, a]
                    continue
                new[a, b] = len(self.vertices)
                self.vertices.append(self._meets(a, b, line))
                across = self.owner.get((b, a))
                if across is not None and across not in cuts:
                    at = self.polygons[across].index(b) + 1
                    self._put(across, [*self.polygons[across][:at], new[a, b], *self.polygons[across][at:]])
        for number, (i, j) in cuts.items():
            polygon, (v, w) = self.polygons[number], (new[self._edge(number, k)] for k in (i, j))
            self._put(number, [v, *polygon[i + 1 : j + 1], w])
            self._put(len(self.polygons), [w, *polygon[j + 1 :], *polygon[: i + 1], v])

    def _crossed(self, number: int, line: Line) -> list[int]:
        """The places of a polygon after which the line crosses it: two, or more where snapping bent an edge."""
        above = [_side(point, line) > 0 for point in self.points(number)]
        return [k for k, (a, b) in enumerate(_edges(above)) if a != b]

    def _edge(self, number: int, place: int) -> tuple[int, int]:
        polygon = self.polygons[number]
        return polygon[place], polygon[(place + 1) % len(polygon)]

    def _put(self, number: int, polygon: Polygon) -> None:
        if number == len(self.polygons):
            self.polygons.append([])
        for edge in _edges(self.polygons[number]):
            del self.owner[edge]
        self.polygons[number] = polygon
        for edge in _edges(polygon):
            self.owner[edge] = number

    def _meets(self, a: int, b: int, line: Line) -> Point:
        """Where the line meets an edge, the same whichever way it is walked."""
        (ax, ay), (bx, by) = self.vertices[min(a, b)], self.vertices[max(a, b)]
        s, t = _side((ax, ay), line), _side((bx, by), line)
        share = s / (s - t)
        return round((ax + share * (bx - ax)) * SNAP) / SNAP, round((ay + share * (by - ay)) * SNAP) / SNAP


def _edges(corners: list[T]) -> Iterable[tuple[T, T]]:
    """Neighbours around a closed run."""
    return zip(corners, corners[1:] + corners[:1], strict=True)


def _side(point: Point, line: Line) -> float:
    """Signed distance to a line."""
    (x, y), (dx, dy) = line
    return dx * (point[1] - y) - dy * (point[0] - x)
