// What a person sees and has decided, as plain values; every change gives a new value, so undo is a list of them.
//
//   step = { solution: solution.json or null, pinned: [id], excluded: [id] }
//
// Turns are quarter turns counter-clockwise (docs/conventions.md); CSS turns clockwise, which only `degrees` knows.

import { act, wrap } from "./poses.js";

export const CLOCKWISE = 3; // one quarter turn clockwise = three counter-clockwise
export const COUNTER = 1;
export const MOST_STEPS = 100;
const RUN = 900; // ms between two steps of a run

export const degrees = (turns) => -90 * turns;

export class History {
  constructor(steps = [{ solution: null, pinned: [], excluded: [] }], at = 0) {
    this.steps = steps;
    this.at = at;
  }
  get now() {
    return this.steps[this.at];
  }
  // `tag`: a run of small steps of one kind, such as nudges, is one step.
  push(step, tag = "") {
    const runs = tag && tag === this.tag && Date.now() - this.pushed < RUN && this.at === this.steps.length - 1;
    this.steps = [...this.steps.slice(0, this.at + (runs ? 0 : 1)), step].slice(-MOST_STEPS);
    this.at = this.steps.length - 1;
    this.tag = tag;
    this.pushed = Date.now();
  }
  get canUndo() {
    return this.at > 0;
  }
  get canRedo() {
    return this.at < this.steps.length - 1;
  }
  undo() {
    this.tag = "";
    if (this.canUndo) this.at -= 1;
  }
  redo() {
    if (this.canRedo) this.at += 1;
  }
}

export function occupant(step, row, col) {
  if (!step.solution) return null;
  const found = Object.entries(step.solution.fragments).find(([, p]) => p.row === row && p.col === col);
  return found ? found[0] : null;
}

export const placed = (step, id) => step.solution?.fragments[id] ?? null;
export const isPlaced = (step, id) => placed(step, id)?.row != null;

export function withFragments(step, changes) {
  // What the solver said of whole pictures is about its own answer.
  const { pictures, confidence, ...solution } = step.solution;
  return restated({ ...step, solution: { ...solution, fragments: { ...solution.fragments, ...changes } } });
}

const OURS = /^\d+ fragments? (is|are) not placed\.$/;

// An answer that placed everything is partial once a person has taken something off, and whole when it is back.
export function restated(step) {
  const { status, reason, fragments, solver } = step.solution;
  const left = Object.entries(fragments).filter(([id, p]) => p.x == null && p.row == null && !step.excluded.includes(id));
  const ours = status === "ok" || (status === "partial" && OURS.test(reason));
  if (!solver || !ours) return step;
  const words = left.length ? `${left.length} ${left.length === 1 ? "fragment is" : "fragments are"} not placed.` : "";
  return { ...step, solution: { ...step.solution, status: left.length ? "partial" : "ok", reason: words } };
}

const pin = (step, id) => (step.pinned.includes(id) ? step.pinned : [...step.pinned, id]);
const without = (list, id) => list.filter((other) => other !== id);

// Where the centre of a cell is, in pixels of the fragments.
const centreOf = ([height, width], row, col) => [(col + 0.5) * width, (row + 0.5) * height];

// A fragment in another cell, or turned: it stays as far off its cell's centre as it was, seen from itself.
function seated(step, old, row, col, turns) {
  if (row == null) return { ...old, row: null, col: null, turns: null, angle: null, x: null, y: null };
  const { pitch } = step.solution;
  const angle = wrap(90 * turns);
  const place = { ...old, row, col, turns, angle };
  if (!pitch) return place;
  let [x, y] = centreOf(pitch, row, col);
  if (old.row != null && old.x != null) {
    const [cx, cy] = centreOf(pitch, old.row, old.col);
    const [dx, dy] = act(angle - old.angle, [old.x - cx, old.y - cy]);
    [x, y] = [x + dx, y + dy];
  }
  return { ...place, x, y };
}

// A person's decision is certain: the confidence of what they touched is no longer the solver's.
export function turnFragment(step, id, turns) {
  const old = placed(step, id);
  const next = seated(step, old, old.row, old.col, (old.turns + turns) % 4);
  return { ...withFragments(step, { [id]: { ...next, confidence: null } }), pinned: pin(step, id) };
}

// To a cell; whoever stands there takes the cell that gets free, or goes to the tray, and loses its pin.
export function moveFragment(step, id, row, col, turns = null) {
  const old = placed(step, id);
  if (old.row === row && old.col === col && (turns === null || turns === old.turns)) return step;
  const other = occupant(step, row, col);
  const changes = { [id]: { ...seated(step, old, row, col, turns ?? old.turns ?? 0), confidence: null } };
  let pinned = pin(step, id);
  if (other && other !== id) {
    const theirs = placed(step, other);
    changes[other] = { ...seated(step, theirs, old.row, old.col, theirs.turns), confidence: null };
    pinned = without(pinned, other);
  }
  return { ...withFragments({ ...step, excluded: without(step.excluded, id) }, changes), pinned };
}

export function toTray(step, id) {
  if (!isPlaced(step, id)) return step;
  const next = withFragments(step, { [id]: { ...seated(step, placed(step, id), null), confidence: null } });
  return { ...next, pinned: without(step.pinned, id) };
}

export function togglePin(step, id) {
  if (step.pinned.includes(id)) return { ...step, pinned: without(step.pinned, id) };
  return isPlaced(step, id) ? { ...step, pinned: pin(step, id) } : step;
}

export function toggleBelonging(step, id) {
  if (step.excluded.includes(id)) return restated({ ...step, excluded: without(step.excluded, id) });
  const excluded = [...step.excluded, id];
  return { ...toTray({ ...step, excluded }, id), excluded };
}

// Can so many fragments fill a grid that is no more than three times as wide as high?
export function fillsAGrid(count) {
  for (let rows = Math.floor(Math.sqrt(count)); rows * rows * 3 >= count; rows -= 1) {
    if (count % rows === 0) return true;
  }
  return false;
}

// Pins of cells, and the grid that they are cells of: it is kept, and so is one that a number of fragments only just fills.
export function cellWishes(step) {
  const pins = Object.fromEntries(
    step.pinned.filter((id) => isPlaced(step, id)).map((id) => {
      const { row, col, turns } = placed(step, id);
      return [id, [row, col, turns]];
    }),
  );
  const left = Object.keys(step.solution.fragments).length - step.excluded.length;
  const keeps = Object.keys(pins).length || !fillsAGrid(left);
  return { pins, grid: keeps ? step.solution.grid.join("x") : null };
}

export function where(step, id) {
  const p = placed(step, id);
  if (step.excluded.includes(id)) return "does not belong";
  if (!p || p.row == null) return "not placed";
  return `row ${p.row + 1}, column ${p.col + 1}`;
}

export function describe(step, id) {
  const p = placed(step, id);
  const words = [id, where(step, id)];
  if (p && p.row != null) {
    if (p.turns) words.push(`turned ${(360 - 90 * p.turns) % 360}° clockwise`);
    if (p.confidence != null) words.push(`${Math.round(100 * p.confidence)} % sure`);
    if (step.pinned.includes(id)) words.push("pinned");
  }
  return words.join(", ");
}
