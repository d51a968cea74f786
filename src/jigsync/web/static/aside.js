// Where fragments lie that are not on the table yet: in rows below what is, each as it was received. A place is kept as
// long as the fragment stays there, so that nothing jumps when another one is taken.

import { isSolved, poseOf } from "./places.js";

const APART = 1.12;

export class Aside {
  constructor(puzzle, content) {
    this.puzzle = puzzle;
    this.sizes = new Map(puzzle.fragments.map((f) => [f.id, f]));
    this.content = content;
    this.slots = new Map();
    this.rows = null;
  }

  // Gives everybody a place. `box` is around what is on the table, `again`: sizes have changed. Rows are laid anew only
  // where a solver has put something onto them: a person who drops a fragment there means to.
  settle(step, box, again = false) {
    const ids = this.puzzle.fragments.map((f) => f.id).filter((id) => !poseOf(step, id));
    for (const id of [...this.slots.keys()]) if (poseOf(step, id)) this.slots.delete(id);
    const covered = box && isSolved(step) && ids.some((id) => this.inside(id, box));
    if (!this.rows || again || covered || !this.slots.size) this.lay(ids, box);
    for (const id of ids) if (!this.slots.has(id)) this.slots.set(id, this.free());
  }

  free() {
    const taken = new Set(this.slots.values());
    for (let slot = 0; ; slot += 1) if (!taken.has(slot)) return slot;
  }

  inside(id, [left, top, right, bottom]) {
    const at = this.slots.has(id) ? this.pose(id) : null;
    return at && at.x > left && at.x < right && at.y > top && at.y < bottom;
  }

  lay(ids, box) {
    const sizes = this.puzzle.fragments.map((f) => this.sizeOf(f.id));
    const cell = [0, 1].map((axis) => {
      const sorted = sizes.map((size) => size[axis]).sort((a, b) => a - b);
      return APART * sorted[Math.floor(0.9 * (sorted.length - 1))];
    });
    const wide = box ? Math.max(box[2] - box[0], 4 * cell[0]) : Math.sqrt((1.6 * ids.length * cell[0]) / cell[1]) * cell[0];
    const cols = Math.max(1, Math.min(box ? Infinity : ids.length, Math.round(wide / cell[0])));
    const middle = box ? (box[0] + box[2]) / 2 : 0;
    const line = box ? box[3] + 0.35 * cell[1] : null;
    this.rows = { cell, cols, middle, line, first: box ? line + 0.75 * cell[1] : 0 };
    this.slots = new Map(ids.map((id, k) => [id, k]));
  }

  pose(id) {
    const { cell, cols, middle, first } = this.rows;
    const slot = this.slots.get(id) ?? 0;
    const [row, col] = [Math.floor(slot / cols), slot % cols];
    const [dx, dy] = this.offset(id);
    return { angle: 0, x: middle + (col - (cols - 1) / 2) * cell[0] - dx, y: first + row * cell[1] - dy };
  }

  sizeOf(id) {
    const { width, height } = this.sizes.get(id);
    const [left, top, right, bottom] = this.content(id);
    return [(right - left) * width, (bottom - top) * height];
  }

  // From the picture's middle to the middle of what it shows.
  offset(id) {
    const { width, height } = this.sizes.get(id);
    const [left, top, right, bottom] = this.content(id);
    return [((left + right) / 2 - 0.5) * width, ((top + bottom) / 2 - 0.5) * height];
  }

  // A line between what is placed and what is not.
  paint(context, view, dense, colours) {
    const top = this.rows?.line;
    if (top == null || !this.slots.size) return;
    context.setTransform(dense, 0, 0, dense, 0, 0);
    const y = ((top - view.y) * view.k) / dense;
    context.fillStyle = colours.soft;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("Not placed", 14, y + 5);
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.setLineDash([6, 5]);
    context.beginPath();
    context.moveTo(104, y);
    context.lineTo(view.pixels[0] / dense - 14, y);
    context.stroke();
    context.setLineDash([]);
  }
}
