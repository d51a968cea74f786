"""Which puzzles a report shows, and their panels.

Nobody picks them: of every setting those at evenly spaced ranks of the first method's score, from its worst to its
best, so a gallery of two shows the puzzles at the lower and the upper quartile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jigsync.evaluate.cache import Cache
from jigsync.evaluate.run import Evaluation
from jigsync.evaluate.scores import Scored
from jigsync.evaluate.spec import Spec
from jigsync.evaluate.table import setting_order
from jigsync.render.gallery import Panel, panels
from jigsync.score.align import aligned
from jigsync.values.errors import JigsyncError
from jigsync.values.layout import Grid


@dataclass(frozen=True, eq=False)
class Shown:
    """One puzzle of the gallery; `missing` says why there are no panels."""

    spec: Spec
    panels: Sequence[Panel]
    missing: str = ""

    @property
    def name(self) -> str:
        """What it is, for people."""
        return f"{self.spec.grid} {self.spec.severity}, {self.spec.picture}"


def chosen(found: Evaluation, count: int) -> list[Spec]:
    """`count` puzzles of every setting, at ranks (k + 1/2) / count of the first method that answered them."""
    groups: dict[tuple[Grid, str], dict[str, Scored]] = {}
    for one in found.scored:
        if one.outcome != "refused":
            groups.setdefault(one.spec.setting, {}).setdefault(one.spec.name, one)
    out = []
    for setting in sorted(groups, key=lambda setting: setting_order(*setting)):
        ranked = sorted(groups[setting].values(), key=lambda one: (_rank(one, found), one.spec.seed))
        places = dict.fromkeys(int((k + 0.5) / count * len(ranked)) for k in range(count))
        out += [ranked[place].spec for place in places]
    return out


def _rank(one: Scored, found: Evaluation) -> tuple[float, float, float]:
    aa_rot, aa, sra = (one.of(measure, found.lead) for measure in ("AA+rot", "AA", "SRA"))
    return aa_rot, aa, sra


def shown(found: Evaluation, specs: Sequence[Spec], confidence: bool) -> Iterator[Shown]:
    """The panels of some puzzles; answers in the leading gauge."""
    stored = Cache(found.root)
    for spec in specs:
        try:
            puzzle, truth = spec.source.make()
            original = spec.source.original()
        except JigsyncError as error:
            yield Shown(spec, (), str(error))
            continue
        answers = []
        for method in found.methods:
            answer = stored.read(spec, method, found.config)
            if answer is not None:
                shown_as = answer.solution
                if found.lead == "best4" and not spec.upright:
                    shown_as = aligned(shown_as, truth, puzzle).solution
                answers.append((method.label, shown_as))
        yield Shown(spec, panels(puzzle, truth, original, answers, confidence))
