"""Routes for windows that have the same puzzle open: what it looks like now, and who still needs it.

A state has a version. A window that keeps one says on which version it is built; when another window was faster it is
told so with 409 and nothing is overwritten. A puzzle is let go when the last window that opened it lets it go.
"""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from jigsync.web.bench import Bench
from jigsync.web.forms import Id
from jigsync.web.limits import Refusal
from jigsync.web.models import Model, Step, plain
from jigsync.web.project import check_step

router = APIRouter(tags=["puzzles"])


class Shared(Model):
    """A state that is to be kept, and the version that it follows."""

    base: Annotated[int, Field(ge=0, le=2**53)]
    step: Step


class Version(Model):
    """The version of a puzzle's state."""

    version: int


class State(Version):
    """A puzzle's state."""

    step: Step


@router.get("/api/puzzles/{puzzle}/state", response_model=State)
async def get_state(bench: Bench, puzzle: Id) -> Response:
    """What the window that kept its state last shows."""
    held = bench.puzzles.get(puzzle)
    if held.state is None:
        raise Refusal(404, "No window has kept a state of this puzzle.")
    return Response(held.state, media_type="application/json")


@router.put("/api/puzzles/{puzzle}/state")
async def put_state(bench: Bench, puzzle: Id, shared: Shared) -> Version:
    """Keeps a window's state; 409 when another window was faster."""
    held = bench.puzzles.get(puzzle)
    await bench.read(lambda: check_step(shared.step, held.puzzle))
    text = json.dumps({"version": shared.base + 1, "step": plain(shared.step)}).encode()
    if shared.base != held.version:  # from here on nothing waits: two windows cannot both be right
        raise Refusal(409, "Another window has changed this puzzle meanwhile.")
    held.state, held.version = text, shared.base + 1
    return Version(version=held.version)
