// What a person does to fragments on the free canvas; every function gives a new step (see state.js).
//
// A table is a solution with a free layout: a fragment without a pose lies beside it, one with a pose is on it, and
// fragments of one component form a group.

import { turnedAbout, middleOf, wrap } from "./poses.js";
import { placed, restated, withFragments } from "./state.js";

const without = (list, ids) => list.filter((id) => !ids.includes(id));

// Can every fragment be shown in a cell, at a quarter turn?
export function showsGrid(step) {
  const { solution } = step;
  if (solution?.layout !== "grid" || !solution.grid) return false;
  return Object.values(solution.fragments).every((p) => p.row == null || p.turns != null);
}

export const poseOf = (step, id) => {
  const p = placed(step, id);
  return p && p.x != null ? { angle: p.angle, x: p.x, y: p.y } : null;
};

const NOWHERE = { angle: null, x: null, y: null, confidence: null, component: 0 };

function table(ids) {
  return {
    format: "jigsync-solution/2",
    status: "partial",
    reason: "",
    layout: "free",
    gauge: { confidence: 1, angles: [0], probabilities: [1] },
    fragments: Object.fromEntries(ids.map((id) => [id, NOWHERE])),
    solver: "",
    seconds: 0,
  };
}

// Has a solver had its say, or is all of it by hand?
export const isSolved = (step) => Boolean(step.solution?.solver);

// The step on the free canvas; cells are forgotten, poses stay.
export function freed(step, ids) {
  const { solution } = step;
  if (!solution) return { ...step, solution: table(ids) };
  if (solution.layout === "free") return step;
  const { grid, pitch, gauge, ...rest } = solution;
  const { turns, ...turning } = gauge;
  const fragments = Object.fromEntries(
    Object.entries(solution.fragments).map(([id, { row, col, turns: quarter, ...place }]) => [id, place]),
  );
  return { ...step, solution: { ...rest, layout: "free", gauge: turning, fragments } };
}

const componentOf = (step, id) => placed(step, id)?.component ?? 0;

function freeComponent(step) {
  return 1 + Math.max(-1, ...Object.values(step.solution.fragments).filter((p) => p.x != null).map((p) => p.component ?? 0));
}

// All fragments of the groups that some fragments belong to.
export function groupOf(step, ids) {
  const parts = new Set(ids.filter((id) => poseOf(step, id)).map((id) => componentOf(step, id)));
  if (!parts.size) return ids;
  return Object.keys(step.solution.fragments).filter((id) => poseOf(step, id) && parts.has(componentOf(step, id)));
}

// Puts fragments to poses. What moves as a whole group is as sure as before; what moves within one is by hand.
export function place(step, poses, all) {
  const base = freed({ ...step, excluded: without(step.excluded, Object.keys(poses)) }, all);
  const ids = Object.keys(poses);
  const whole = new Set(groupOf(base, ids)).size === ids.length;
  let next = freeComponent(base);
  const changes = {};
  for (const id of ids) {
    const old = base.solution.fragments[id];
    const { angle, x, y } = poses[id];
    const fresh = old.x == null;
    changes[id] = {
      ...old,
      angle: wrap(angle),
      x,
      y,
      confidence: fresh || !whole ? null : old.confidence,
      component: fresh ? next++ : old.component ?? 0,
    };
  }
  return withFragments(base, changes);
}

// A fragment beside others that it was found to fit: it joins the group of the first of them.
export function fitted(step, id, fit, all) {
  const next = place(step, { [id]: fit }, all);
  const component = componentOf(next, fit.beside[0]);
  return withFragments(next, { [id]: { ...next.solution.fragments[id], component } });
}

export function layAside(step, ids, all) {
  const base = freed(step, all);
  const changes = Object.fromEntries(ids.map((id) => [id, NOWHERE]));
  return { ...withFragments(base, changes), pinned: without(step.pinned, ids) };
}

export function toggleLock(step, ids) {
  const able = ids.filter((id) => poseOf(step, id));
  if (!able.length) return step;
  const locked = able.every((id) => step.pinned.includes(id));
  return { ...step, pinned: locked ? without(step.pinned, able) : [...new Set([...step.pinned, ...able])] };
}

export function toggleExcluded(step, ids, all) {
  if (ids.every((id) => step.excluded.includes(id))) {
    const back = { ...step, excluded: without(step.excluded, ids) };
    return back.solution ? restated(back) : back;
  }
  const excluded = [...new Set([...step.excluded, ...ids])];
  return ids.some((id) => poseOf(step, id)) ? layAside({ ...step, excluded }, ids, all) : { ...step, excluded };
}

export function group(step, ids) {
  const able = ids.filter((id) => poseOf(step, id));
  if (able.length < 2) return step;
  const component = Math.min(...able.map((id) => componentOf(step, id)));
  return withFragments(step, Object.fromEntries(able.map((id) => [id, { ...placed(step, id), component }])));
}

export function ungroup(step, ids) {
  let next = step.solution ? freeComponent(step) : 0;
  const able = ids.filter((id) => poseOf(step, id));
  if (!able.length) return step;
  return withFragments(step, Object.fromEntries(able.map((id) => [id, { ...placed(step, id), component: next++ }])));
}

// The whole picture by any angle; what was that far from upright now is.
export function turnWhole(step, degrees, all) {
  const base = freed(step, all);
  const ids = Object.keys(base.solution.fragments).filter((id) => poseOf(base, id));
  if (!ids.length || !degrees) return step;
  const middle = middleOf(ids.map((id) => poseOf(base, id)));
  const changes = Object.fromEntries(
    ids.map((id) => [id, { ...placed(base, id), ...turnedAbout(poseOf(base, id), middle, degrees) }]),
  );
  const next = withFragments(base, changes);
  return { ...next, solution: { ...next.solution, gauge: turnedGauge(base.solution.gauge, degrees) } };
}

// See `Gauge.turned`: the first angle is 0, "as shown".
function turnedGauge({ angles, probabilities, clear }, degrees) {
  const ways = angles.map((angle, k) => ({ angle: wrap(angle - degrees), p: probabilities[k] }));
  ways.sort((a, b) => Math.abs(a.angle) - Math.abs(b.angle));
  if (Math.abs(ways[0].angle) > 1e-6) {
    // Only an angle that nobody spoke of gives way, so that turning by hand does not make the list longer and longer.
    ways.unshift({ angle: 0, p: 0 });
  } else ways[0].angle = 0;
  const kept = ways.filter((way, k) => k === 0 || way.p > 0);
  return { confidence: kept[0].p, angles: kept.map((w) => w.angle), probabilities: kept.map((w) => w.p), clear };
}

// Solving again keeps what is locked exactly where it is.
export function lockedPlaces(step) {
  return Object.fromEntries(
    step.pinned.filter((id) => poseOf(step, id)).map((id) => {
      const { angle, x, y } = poseOf(step, id);
      return [id, [x, y, angle]];
    }),
  );
}
