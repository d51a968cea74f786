"""What to evaluate: which puzzles, which methods.

A *setting* is what puzzles share (`Setting`); a *method* is a solver with a measurer. Every setting takes `puzzles`
puzzles from the pictures in the order of a hash, so pictures are drawn at random, more puzzles contain the fewer, and
every method sees the same ones; a second round over the pictures cuts them with other seeds. A puzzle is cut and torn
alike in all presentations. Puzzles are listed round by round over all settings: a run that is stopped has about as many
of each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from jigsync.corpus.manifest import MANIFEST_FILE, Row, plan_rows, read_manifest
from jigsync.corpus.plan import SWEEP_FILE, Skipped, load_sweep, usable_pictures
from jigsync.cutting.options import SEVERITIES, CutOptions
from jigsync.cutting.seeds import derive_seed
from jigsync.evaluate.fingerprint import AUTO, digest, generator_identity
from jigsync.evaluate.progress import Progress
from jigsync.evaluate.sources import GapSource, PictureSource
from jigsync.evaluate.spec import Method, Setting, Spec
from jigsync.evaluate.wanted import GAP, Wanted
from jigsync.io.gap import SPLITS as GAP_SPLITS
from jigsync.io.gap import GapSplit
from jigsync.io.images import list_images
from jigsync.io.remote import Place, Remote
from jigsync.score.kinds import kinds_of
from jigsync.values.errors import InputError, OptionError, bad_value


def methods_of(names: Sequence[str], defaults: Sequence[str]) -> tuple[Method, ...]:
    """Every solver with every measurer; "tree:mgc" names both at once. Repeated ones are taken once."""
    found = []
    for name in names:
        solver, _, measurer = name.partition(":")
        found += [Method(solver, one) for one in ([measurer] if measurer else defaults or [AUTO])]
    if not found:
        raise OptionError("An evaluation needs at least one solver.")
    return tuple(dict.fromkeys(found))


def from_pictures(
    images: Path, wanted: Wanted, workers: int, progress: Progress
) -> tuple[list[Spec], tuple[Skipped, ...]]:
    """Puzzles of a folder of pictures, or of one; and the pictures that cannot be used."""
    pictures = [images] if images.is_file() else list_images(images)
    found, skipped = usable_pictures(pictures, workers, progress, wanted.tears)
    root = (images.parent if images.is_file() else images).resolve()
    rounds = -(-(wanted.puzzles or len(found)) // max(1, len(found)))
    rows = _planned(found, wanted, rounds)
    if not rows:
        why = f": {skipped[0].reason}" if skipped else "."
        raise InputError(f"None of the {len(pictures)} pictures in '{images}' can be used{why}")
    return _chosen(rows, root, wanted), tuple(skipped)


def _planned(found: Sequence[tuple[str, str]], wanted: Wanted, rounds: int) -> list[Row]:
    rows = []
    severities = wanted.severities or tuple(SEVERITIES)
    for grid in wanted.grids:
        cell, shown = wanted.cell_of(grid), wanted.of_cuts
        rows += plan_rows(found, [grid], severities, per_image=rounds, cell=cell, seed=wanted.seed, presentations=shown)
    for torn in wanted.tears:
        if not wanted.erosions or wanted.severities:
            rows += plan_rows(found, [], severities, per_image=rounds, cell=torn.size, seed=wanted.seed, tears=[torn])
        # The same tears at every erosion.
        plain = plan_rows(found, [], ["clean"], per_image=rounds, cell=torn.size, seed=wanted.seed, tears=[torn])
        rows += [
            replace(row, key=f"{row.key.removesuffix(f'-{_round(row)}')}-{worn.erosion:g}-{_round(row)}", options=worn)
            for worn in wanted.worn(torn)
            for row in plain
            if worn.erosion or "clean" not in wanted.severities
        ]
    return [replace(row, options=replace(row.options, turns=wanted.turns)) for row in rows]


def from_manifest(manifest: Place, images: Path | None, wanted: Wanted) -> list[Spec]:
    """Puzzles of a manifest by `jigsync sweep`, or a part of one; `images` when sweep.json beside it does not tell."""
    is_folder = not manifest.is_file() if isinstance(manifest, Remote) else manifest.is_dir()
    path = manifest / MANIFEST_FILE if is_folder else manifest
    rows = [row for row in read_manifest(path) if wanted.takes(row.options, row.severity)]
    if not rows:
        raise InputError(f"The manifest '{path}' has no puzzle of the grids, pieces and severities asked for.")
    if images is None:
        if not (path.parent / SWEEP_FILE).is_file():
            raise InputError(f"There is no {SWEEP_FILE} beside '{path}' that names its pictures: name --images.")
        images = load_sweep(path.parent).images
    return _chosen(rows, images.resolve(), wanted)


def _chosen(rows: Sequence[Row], root: Path, wanted: Wanted) -> list[Spec]:
    """The first so many of every setting in the order of (round, hash of the picture), interleaved."""
    rows = [row for row in rows if wanted.split in ("", row.split)]
    if not rows:
        raise InputError(f"None of the pictures is of the split '{wanted.split}'.")
    made_by = digest(generator_identity())
    kinds = kinds_of(sorted({root / row.image for row in rows}))
    settings: dict[Setting, list[Spec]] = {}
    for row in sorted(rows, key=lambda row: (_round(row), derive_seed(wanted.seed, row.image_sha256))):
        listed = settings.setdefault(_setting(row), [])
        if wanted.puzzles is None or len(listed) < wanted.puzzles:
            listed.append(_spec(row, root, kinds[root / row.image], made_by))
    return interleaved(settings.values())


def _round(row: Row) -> int:
    rank = row.key.rpartition("-")[2]
    return int(rank) if rank.isdecimal() else 0


def _setting(row: Row) -> Setting:
    options = row.options
    if isinstance(options, CutOptions):
        grid = options.grid
        return Setting(str(grid), row.severity, options.presentation, grid, grid.size)
    only = options.erosion > 0 and not options.rim and not options.photo
    damage = f"{options.erosion:g} off" if only else row.severity
    return Setting(f"{options.style}{options.pieces}", damage, options.presentation, None, options.pieces)


def _spec(row: Row, root: Path, kind: str, made_by: str) -> Spec:
    depends = {"picture": row.image_sha256, "options": row.options.to_json(), "seed": row.seed, "generator": made_by}
    return Spec(
        f"{row.key}-{digest(depends)[:12]}",
        _setting(row),
        row.image,
        kind,
        derive_seed(row.seed, "solve") % 2**31,
        not row.options.turns,
        PictureSource(root / row.image, row.image_sha256, row.options, row.seed),
    )


def from_gap(folder: Path, wanted: Wanted) -> list[Spec]:
    """Puzzles of GAP: of DIR/<split>, and of DIR/GAP-3/<split> and the like."""
    split = wanted.split or "test"
    if split not in GAP_SPLITS:
        raise bad_value("split", "GAP", f"one of {', '.join(GAP_SPLITS)}", split)
    folders = [path for path in (folder, *sorted(folder.glob("GAP-*"))) if (path / split).is_dir()] or [folder]
    settings = []
    for path in folders:
        with GapSplit(path, split) as puzzles:
            if not wanted.takes(CutOptions(puzzles.grid, preset="gap"), GAP):
                continue
            order = sorted(range(len(puzzles)), key=lambda index: derive_seed(wanted.seed, "gap", index))
            settings.append([_gap_spec(puzzles, path, index) for index in order[: wanted.puzzles]])
    if not settings:
        raise InputError(f"The GAP folder '{folder}' has no puzzle of the grids asked for.")
    return interleaved(settings)


def _gap_spec(puzzles: GapSplit, folder: Path, index: int) -> Spec:
    puzzle, truth = puzzles[index]
    found = hashlib.sha256()
    for name, pixels in zip(puzzle.ids, puzzle.fragments.pixels, strict=True):
        found.update(f"{name} {truth.placement[name].cell}".encode())
        found.update(pixels.tobytes())
    sha = found.hexdigest()
    seed = derive_seed(sha, "solve") % 2**31
    source = GapSource(folder.resolve(), puzzles.split, index)
    setting = Setting(str(truth.grid), GAP, "cell", truth.grid, truth.grid.size)
    name = puzzle.name
    return Spec(f"{name.lower()}-{sha[:12]}", setting, name, f"GAP-{truth.grid.rows}", seed, True, source)


def interleaved(settings: Iterable[Sequence[Spec]]) -> list[Spec]:
    """Round by round over the settings, those of most fragments first."""
    ordered = sorted(settings, key=lambda specs: -specs[0].setting.fragments)
    rounds = max(len(specs) for specs in ordered)
    return [specs[k] for k in range(rounds) for specs in ordered if k < len(specs)]
