"""An answer taken apart into its pictures: each the answer about the fragments of one component alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from jigsync.solvers.base import Assignment


def split(answer: Assignment) -> list[Assignment]:
    """The pictures of an answer, the first one first; one that has a single picture as it is."""
    out = []
    for one in (answer, *answer.more):
        poses = one.poses
        labels = [0] if poses is None else np.unique(poses.component[poses.component >= 0]).tolist()
        for label in labels if len(labels) > 1 else ():
            assert poses is not None
            mine = poses.component == label
            sure = None if one.confidences is None else np.where(mine, one.confidences, 0.0)
            alone = replace(poses, component=np.where(mine, 0, -1))
            out.append(replace(one, poses=alone, confidences=sure, more=()))
        if len(labels) <= 1:
            out.append(replace(one, more=()))
    return out


def placed(answer: Assignment) -> NDArray[np.bool_]:
    """(N,) which fragments have a place in this picture."""
    if answer.poses is not None:
        return np.asarray(answer.poses.component >= 0)
    return np.asarray(answer.slots >= 0)


def confidences(answer: Assignment) -> NDArray[np.float64] | None:
    """(N,) of every fragment in the picture that it is in; None when the solver has no opinion."""
    told = [one.confidences for one in (answer, *answer.more) if one.confidences is not None]
    return np.max(np.stack(told), axis=0) if told else None
