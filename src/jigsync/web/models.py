"""The shapes of everything that goes over HTTP; the OpenAPI document is made from them.

Lists and objects of any length are bounded by MOST_FRAGMENTS, and a list is given up at its first wrong item: what is
wrong with a request takes no more time and memory to say than what is right with it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypeAliasType

from jigsync.io.placement_json import MAX_XY
from jigsync.io.schema import Node
from jigsync.io.solution_file import parse_solution, solution_json
from jigsync.io.solution_schema import SCHEMA
from jigsync.solution import Solution
from jigsync.web.drawings import PictureFormat
from jigsync.web.limits import MOST_FRAGMENTS

Value = TypeVar("Value")


def _few(value: Any) -> Any:
    """Counts what is in an object before any of it is looked at."""
    if isinstance(value, dict) and len(value) > MOST_FRAGMENTS:
        raise PydanticCustomError("too_long", "Object should have at most {most} entries", {"most": MOST_FRAGMENTS})
    return value


FragmentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["f003"])]
Number = Annotated[float, Field(ge=-MAX_XY, le=MAX_XY)]
FragmentIds = Annotated[list[FragmentId], FailFast(), Field(max_length=MOST_FRAGMENTS)]
ByFragment = Annotated[dict[FragmentId, Value], BeforeValidator(_few)]
Name = Annotated[str, Field(max_length=64)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Turns = Annotated[int, Field(ge=0, le=3, description="quarter turns, counter-clockwise")]
Cell = Annotated[int, Field(ge=0, le=9999)]
GridText = Annotated[str, Field(pattern=r"^[1-9]\d{0,3}(x[1-9]\d{0,3})?$", examples=["4x6"])]
Seed = Annotated[int, Field(ge=0, le=2**53)]


class Model(BaseModel):
    """An unknown key is refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        """One unknown key is enough: pydantic would tell of each of a hundred thousand."""
        if isinstance(value, dict) and len(value) > len(cls.model_fields):
            key = next(str(key) for key in value if key not in cls.model_fields)
            raise PydanticCustomError("extra_forbidden", "Extra inputs are not permitted: '{key}'", {"key": key[:60]})
        return value


class Problem(Model):
    """Why a request was turned down."""

    detail: str = Field(description="one sentence for a person")


def _solution(value: Any) -> Solution:
    """A solution.json as `solution_file` reads it: what is wrong with it is said in the same words."""
    if isinstance(value, Solution):
        return value
    if isinstance(value, dict):
        _few(value.get("fragments"))
    return parse_solution(Node(value, "solution"))


SolutionFile = TypeAliasType(
    "SolutionFile",
    Annotated[
        Solution, PlainValidator(_solution), PlainSerializer(solution_json, dict[str, Any]), WithJsonSchema(SCHEMA)
    ],
)


class Shown(Model):
    """A solution, and what it takes to draw it."""

    solution: SolutionFile
    pitch: list[int] = Field(description="height and width of a cell, or of a usual fragment, in fragment pixels")


class Step(Model):
    """One state of the workbench: what a person sees, pinned and ruled out."""

    solution: SolutionFile | None = None
    pinned: FragmentIds = []
    excluded: FragmentIds = []


class SolveOptions(Model):
    """How to solve; everything may be left out."""

    grid: GridText | None = Field(None, description="null tries every grid that fits")
    layout: Literal["auto", "grid", "free"] = Field("auto", description="rows and columns, or any pose at all")
    pins: ByFragment[tuple[Cell, Cell, Turns]] = Field({}, description="id -> row, col, turns: stays there")
    places: ByFragment[tuple[Number, Number, Number]] = Field({}, description="id -> x, y, degrees: stays there")
    exclude: FragmentIds = Field([], description="ids that do not belong to the picture")
    upright: bool = Field(False, description="no fragment is turned")
    solver: Name = "jigsync"
    seed: Seed = 0
    time_limit: Annotated[float, Field(gt=0.0)] | None = Field(None, description="seconds")


class ProjectModel(Model):
    """project.json: every state up to now, and which of them is shown."""

    format: Literal["jigsync-project/1"] = "jigsync-project/1"
    name: Annotated[str, Field(max_length=100)] = "puzzle"
    grid: GridText | None = None
    layout: Literal["auto", "grid", "free"] = "auto"
    upright: bool = False
    steps: Annotated[list[Step], FailFast(), Field(min_length=1, max_length=200)]
    at: Annotated[int, Field(ge=0, lt=200)] = 0


class FragmentModel(Model):
    """A fragment's size in pixels, and its skew in the scan it came from."""

    id: str
    width: int
    height: int
    skew: float | None = None


class PuzzleModel(Model):
    """A puzzle that the server holds."""

    id: str
    name: str
    fragments: list[FragmentModel]
    pitch: list[int]
    notes: list[str] = []
    job: Annotated[str | None, Field(description="the solve of it that is under way")] = None
    version: Annotated[int, Field(description="of its state, 0 when no window has kept one")] = 0
    project: ProjectModel | None = None


class PictureModel(Model):
    """A picture that the server holds to cut puzzles from."""

    id: str
    name: str
    width: int
    height: int


class CutOptionsModel(Model):
    """How to cut a picture."""

    picture: Annotated[str, Field(max_length=64, description="id of an uploaded picture, or a bundled one's name")]
    rows: Annotated[int, Field(ge=1, le=100)] = 4
    cols: Annotated[int, Field(ge=1, le=100)] = 6
    shape: Annotated[float, Field(ge=0.0, le=32.0, description="how curved the cuts are")] = 16.0
    erosion: Annotated[float, Field(ge=0.0, le=0.4, description="how worn the edges are")] = 0.1
    photo: Annotated[float, Field(ge=0.0, le=1.0, description="how faded, stained and noisy")] = 0.1
    seed: Seed = 0


class JobModel(Model):
    """A solve: where it is, and its result."""

    id: str
    puzzle: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    stage: str = ""
    fraction: Share = 0.0
    energy: float | None = Field(None, description="of the best placement so far; lower is better")
    seconds: float = 0.0
    reason: str = Field("", description="why it failed, or is only partly solved")
    shown: Shown | None = Field(None, description="the best placement so far, and at the end the solution")


class KeptPuzzle(Model):
    """kept.json, beside a puzzle that the server keeps on the disk."""

    format: Literal["jigsync-kept-puzzle/1"] = "jigsync-kept-puzzle/1"
    name: str
    notes: list[str] = []
    skews: dict[str, float | None] | None = None


class KeptJob(JobModel):
    """A job that the server keeps on the disk; `number` is its place in the order they were asked for."""

    format: Literal["jigsync-kept-job/1"] = "jigsync-kept-job/1"
    number: int
    options: SolveOptions


class TurnRequest(Model):
    """A further global turn."""

    solution: SolutionFile
    turns: Turns


class PictureRequest(Model):
    """Which picture to draw."""

    solution: SolutionFile
    format: PictureFormat = Field(
        "png", description="svg and ora have a layer for each fragment, the sheet is a PDF to print"
    )
    gaps: bool = Field(False, description="pull the fragments apart; of png and tiff")
    longest: Annotated[int, Field(ge=16, le=20_000)] | None = Field(
        None, description="shrink to so many pixels; of png and tiff"
    )


class CellRequest(Model):
    """Which cell to find fragments for."""

    solution: SolutionFile
    row: Cell
    col: Cell
    limit: Annotated[int, Field(ge=1, le=20)] = 6


class CandidateModel(Model):
    """A fragment that may stand in the cell."""

    id: str
    turns: Turns
    score: float
    probability: Share


class FitsRequest(Model):
    """Which fragment to find places for."""

    solution: SolutionFile
    fragment: FragmentId
    limit: Annotated[int, Field(ge=1, le=20)] = 6


class FitModel(Model):
    """A place where the fragment may lie: its centre and angle in degrees, and which placed fragments say so."""

    x: float
    y: float
    angle: float
    log_odds: float
    beside: list[str]


class TableRequest(Model):
    """What the spreadsheet lists."""

    step: Step


class About(Model):
    """What this server is and takes."""

    version: str
    limits: dict[str, float]
    pictures: list[str]
    severities: dict[str, dict[str, float]]
    solvers: list[str]


def plain(model: BaseModel) -> dict[str, Any]:
    """A model as JSON values."""
    return model.model_dump(mode="json")
