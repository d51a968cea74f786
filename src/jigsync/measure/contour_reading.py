"""From codes of samples to hypotheses about pairs: what the measurers of outlines share.

codes -> matches -> gap -> poses of pairs -> evidence -> log-odds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from jigsync.measure.contour_evidence import Contacts, Depths, contacts, described, information
from jigsync.measure.contour_gap import estimate_gap
from jigsync.measure.contour_matches import SampleCodes, match
from jigsync.measure.contour_poses import PairPoses, paired, propose
from jigsync.measure.outline import REFERENCE, STEP, Scan
from jigsync.values import angles
from jigsync.values.hypotheses import PairHypotheses
from jigsync.values.hypothesised import Hypothesised
from jigsync.values.outlines import Floats, Matches, Outlines

LEAST_ODDS: Final = -6.0
MOST_PER_FRAGMENT: Final = 12


@dataclass(frozen=True, eq=False)
class Read:
    """What is read of a puzzle before anything is judged.

    Attributes:
        outlines, matches: of all fragments.
        poses: of pairs.
        contacts: under these poses.
        gap: between neighbours, px.
        described: (H, len(FEATURES)), see `contour_evidence.described`.
    """

    outlines: Outlines
    matches: Matches
    poses: PairPoses
    contacts: Contacts
    gap: float
    described: Floats

    @property
    def size(self) -> float:
        """sqrt(area) of the median fragment, px."""
        return self.outlines.step / STEP * REFERENCE

    def hypotheses(self, odds: Floats) -> PairHypotheses:
        """All poses, with these odds of FEATURES."""
        poses = self.poses
        known = information(poses, self.contacts, self.outlines, self.gap)
        turn, xy = angles.wrap(np.angle(poses.phase)), angles.vectors(poses.xy)
        return PairHypotheses(self.outlines.n, poses.i, poses.j, turn, xy, self.described @ odds, known)

    def judged(self, odds: Floats) -> Hypothesised:
        """The hypotheses that are not out of the question, the likeliest first."""
        found = self.hypotheses(odds)
        order = np.argsort(-found.log_odds, kind="stable")[: MOST_PER_FRAGMENT * found.n]
        order = order[found.log_odds[order] > LEAST_ODDS]
        return Hypothesised(found.keep(order), self.size, self.outlines, self.matches)


def read(outlines: Outlines, scans: list[Scan], codes: SampleCodes) -> Read:
    """From codes to poses and what speaks for them."""
    matches, log_all = match(codes, outlines)
    found = paired(matches, outlines)
    poses = propose(found, outlines)
    gap = estimate_gap(found, poses, outlines)
    if gap > 0:
        poses = propose(found, outlines, gap)
    poses = poses.keep(np.arange(min(len(poses), MOST_PER_FRAGMENT * outlines.n)))
    touching = contacts(poses, outlines, codes, log_all, Depths.of(scans), gap)
    return Read(outlines, matches, poses, touching, gap, described(poses, touching, outlines))
