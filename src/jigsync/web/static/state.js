// What a person sees and has decided, as plain values; every change gives a new value, so undo is a list of them.
//
//   step = { solution: solution.json or null, pinned: [id], excluded: [id] }
//
// Turns are quarter turns counter-clockwise (docs/conventions.md); CSS turns clockwise, which only `degrees` knows.

export const CLOCKWISE = 3; // one quarter turn clockwise = three counter-clockwise
export const COUNTER = 1;
export const MOST_STEPS = 100;

export const degrees = (turns) => -90 * turns;

export class History {
  constructor(steps = [{ solution: null, pinned: [], excluded: [] }], at = 0) {
    this.steps = steps;
    this.at = at;
  }
  get now() {
    return this.steps[this.at];
  }
  push(step) {
    this.steps = [...this.steps.slice(0, this.at + 1), step].slice(-MOST_STEPS);
    this.at = this.steps.length - 1;
  }
  get canUndo() {
    return this.at > 0;
  }
  get canRedo() {
    return this.at < this.steps.length - 1;
  }
  undo() {
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

function withFragments(step, changes) {
  const fragments = { ...step.solution.fragments, ...changes };
  const left = Object.entries(fragments).filter(([id, p]) => p.row == null && !step.excluded.includes(id)).length;
  const solution = {
    ...step.solution,
    fragments,
    status: left ? "partial" : "ok",
    reason: left ? `${left} fragments are not placed.` : "",
    confidence: null,
    whole: null,
  };
  return { ...step, solution };
}

const pin = (step, id) => (step.pinned.includes(id) ? step.pinned : [...step.pinned, id]);
const without = (list, id) => list.filter((other) => other !== id);

// A person's decision is certain: the confidence of what they touched is no longer the solver's.
export function turnFragment(step, id, turns) {
  const old = placed(step, id);
  const next = withFragments(step, { [id]: { ...old, turns: (old.turns + turns) % 4, confidence: null } });
  return { ...next, pinned: pin(step, id) };
}

// To a cell; whoever stands there takes the cell that gets free, or goes to the tray, and loses its pin.
export function moveFragment(step, id, row, col, turns = null) {
  const old = placed(step, id);
  if (old.row === row && old.col === col && (turns === null || turns === old.turns)) return step;
  const other = occupant(step, row, col);
  const changes = { [id]: { row, col, turns: turns ?? old.turns, confidence: null } };
  let pinned = pin(step, id);
  if (other && other !== id) {
    changes[other] = { ...placed(step, other), row: old.row, col: old.col, confidence: null };
    pinned = without(pinned, other);
  }
  return { ...withFragments({ ...step, excluded: without(step.excluded, id) }, changes), pinned };
}

export function toTray(step, id) {
  if (!isPlaced(step, id)) return step;
  const next = withFragments(step, { [id]: { ...placed(step, id), row: null, col: null, confidence: null } });
  return { ...next, pinned: without(step.pinned, id) };
}

export function togglePin(step, id) {
  if (step.pinned.includes(id)) return { ...step, pinned: without(step.pinned, id) };
  return isPlaced(step, id) ? { ...step, pinned: pin(step, id) } : step;
}

export function toggleBelonging(step, id) {
  if (step.excluded.includes(id)) {
    const back = { ...step, excluded: without(step.excluded, id) };
    return step.solution ? withFragments(back, {}) : back;
  }
  const excluded = [...step.excluded, id];
  if (!step.solution) return { ...step, excluded };
  return { ...toTray({ ...step, excluded }, id), excluded };
}

// Can so many fragments fill a grid that is no more than three times as wide as high?
export function fillsAGrid(count) {
  for (let rows = Math.floor(Math.sqrt(count)); rows * rows * 3 >= count; rows -= 1) {
    if (count % rows === 0) return true;
  }
  return false;
}

// What the solver gets of a person's decisions.
export function wishes(step, grid, upright) {
  const pins = Object.fromEntries(
    step.pinned.filter((id) => isPlaced(step, id)).map((id) => {
      const { row, col, turns } = placed(step, id);
      return [id, [row, col, turns]];
    }),
  );
  // Pins are cells of the grid that is shown, so solving again keeps it; so does a number that fills no other.
  const shown = step.solution?.grid?.join("x") ?? null;
  const left = step.solution ? Object.keys(step.solution.fragments).length - step.excluded.length : 0;
  const keeps = Object.keys(pins).length || !fillsAGrid(left);
  return { grid: grid || (keeps ? shown : null), upright, pins, exclude: step.excluded };
}

export function where(step, id) {
  const p = placed(step, id);
  if (step.excluded.includes(id)) return "not belonging";
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
