// What the page says about a step, in words; everything is read from the step itself, so it is never stale.

import { isSolved, poseOf, showsGrid } from "./places.js";
import { placed, where } from "./state.js";

export const UNSURE = 0.8;
export const percent = (p) => `${Math.round(100 * p)}\u00a0%`;
// Nothing is certain that only rounds to it.
const nearly = (p) => (p >= 0.995 && p < 1 ? "more than 99\u00a0%" : p < 0.005 && p > 0 ? "less than 1\u00a0%" : percent(p));
const few = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

const STATUS = {
  ok: "Put together.",
  unsure: "Not sure.",
  partial: "Only partly put together.",
  failed: "Not put together.",
};

// The answer at the top of the page: { status, text } or null when there is nothing to say.
export function verdictOf(step) {
  const { solution } = step;
  if (!solution) return null;
  const all = Object.values(solution.fragments);
  const on = all.filter((p) => p.x != null || p.row != null);
  if (!isSolved(step)) {
    if (!on.length) return null;
    return { status: "", text: `By hand: ${on.length} of ${few(all.length, "fragment")} on the table.` };
  }
  const groups = new Set(on.map((p) => p.component ?? 0)).size;
  const shape = showsGrid(step)
    ? `in a ${solution.grid[0]} × ${solution.grid[1]} grid`
    : groups > 1
      ? `freely, in ${groups} groups that do not say how they lie towards each other,`
      : "freely";
  const sure = on.map((p) => p.confidence).filter((p) => p != null);
  const words = [
    `${on.length} of ${few(all.length, "fragment")} placed ${shape} in ${took(solution.seconds)}.`,
    solution.reason ?? "",
    solution.note ?? "",
    solution.confidence != null ? `It is right with a probability of ${nearly(solution.confidence)}.` : "",
    sure.length ? `The solver is ${nearly(mean(sure))} sure of a fragment on average, ${nearly(Math.min(...sure))} at least.` : "",
    on.length > sure.length && sure.length ? `${few(on.length - sure.length, "fragment is", "fragments are")} where you put them.` : "",
  ];
  const status = STATUS[solution.status] ?? `${solution.status}.`;
  return { status: solution.status, head: status, text: words.filter(Boolean).join(" ") };
}

const mean = (list) => list.reduce((sum, p) => sum + p, 0) / list.length;
const took = (seconds) => (seconds < 0.1 ? "a moment" : `${seconds.toFixed(1)} s`);

export function sureness(step) {
  const sure = Object.values(step.solution.fragments).map((p) => p.confidence).filter((p) => p != null);
  const unsure = sure.filter((p) => p < UNSURE).length;
  if (!sure.length) return "";
  if (!unsure) return `The solver is at least ${percent(UNSURE)} sure of every fragment it placed.`;
  const limit = `The solver is less than ${percent(UNSURE)} sure of`;
  if (unsure === sure.length) return `${limit} ${unsure === 1 ? "its only fragment" : `all ${unsure} fragments`}. The result is probably wrong.`;
  return `${limit} ${unsure} of ${sure.length} fragments. Lock what you know and solve again.`;
}

const turnedWords = (angle) => {
  const right = Math.round(-10 * angle) / 10;
  return right ? [`turned ${Math.abs(right)}° ${right > 0 ? "clockwise" : "counter-clockwise"}`] : [];
};

// Where a fragment is on the free canvas.
export function describePlace(step, id) {
  const pose = poseOf(step, id);
  const words = [id];
  if (step.excluded.includes(id)) words.push("does not belong");
  else if (!pose) words.push("not placed");
  else {
    const p = placed(step, id);
    words.push(`at ${Math.round(pose.x)}, ${Math.round(pose.y)}`, ...turnedWords(pose.angle));
    words.push(`group ${(p.component ?? 0) + 1}`);
    if (isSolved(step)) words.push(p.confidence == null ? "placed by you" : `${percent(p.confidence)} sure`);
    if (step.pinned.includes(id)) words.push("locked");
  }
  return words.join(", ");
}

// The words of the card about what is selected, on the canvas or in the grid.
export function aboutSelected(step, ids, fragments, inGrid, cell) {
  if (!ids.length) {
    if (inGrid && cell?.row !== undefined) return "This cell is empty.";
    return inGrid ? "Select a fragment to turn, move or pin it." : "Select a fragment to move, turn or lock it.";
  }
  if (ids.length > 1) return `${ids.length} fragments are selected.`;
  const [id] = ids;
  const { skew } = fragments.find((f) => f.id === id);
  const lay = skew != null ? [`lay ${Math.abs(skew).toFixed(1)}° askew in the scan`] : [];
  const words = inGrid ? inCell(step, id) : describePlace(step, id).split(", ").slice(1);
  const text = [...words, ...lay].join(", ");
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

function inCell(step, id) {
  const p = placed(step, id);
  const words = [where(step, id)];
  if (p?.row != null && p.turns) words.push(`turned ${(360 - 90 * p.turns) % 360}° clockwise`);
  if (p?.row != null) words.push(p.confidence == null ? "placed by you" : `${percent(p.confidence)} sure`);
  if (step.pinned.includes(id)) words.push("pinned: solving again keeps it");
  return words;
}
