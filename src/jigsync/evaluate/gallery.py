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
from jigsync.evaluate.spec import Setting, Spec
from jigsync.evaluate.table import LEAD
from jigsync.render.gallery import Panel, panels
from jigsync.score.align import aligned
from jigsync.values.errors import JigsyncError


@dataclass(frozen=True, eq=False)
class Shown:
    """One puzzle of the gallery; `missing` says why there are no panels."""

    spec: Spec
    panels: Sequence[Panel]
    missing: str = ""

    @property
    def name(self) -> str:
        """What it is, for people."""
        return f"{self.spec.setting.label}, {self.spec.picture}"


def chosen(found: Evaluation, count: int) -> list[Spec]:
    """`count` puzzles of every setting, at ranks (k + 1/2) / count of the first method that answered them."""
    groups: dict[Setting, dict[str, Scored]] = {}
    for one in found.scored:
        if one.outcome != "refused":
            groups.setdefault(one.spec.setting, {}).setdefault(one.spec.name, one)
    out = []
    for setting in sorted(groups, key=lambda setting: setting.order):
        ranked = sorted(groups[setting].values(), key=lambda one: (_rank(one), one.spec.seed))
        places = dict.fromkeys(int((k + 0.5) / count * len(ranked)) for k in range(count))
        out += [ranked[place].spec for place in places]
    return out


def _rank(one: Scored) -> tuple[float, ...]:
    return tuple(one.poses[measure] or 0.0 for measure in (LEAD, "largest", "contacts", "upright"))


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
