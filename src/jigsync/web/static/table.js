// The free canvas: fragments at their poses, those without one beside them. It draws and finds; gestures.js and
// table_keys.js act, and tell the workbench.

import { Aside } from "./aside.js";
import { Bitmaps } from "./bitmaps.js";
import { Camera } from "./camera.js";
import { Gestures } from "./gestures.js";
import { drawBadge, drawGhost, drawHandle, drawRim, palette, stripes } from "./paint.js";
import { poseOf } from "./places.js";
import { act, clockwise, middleOf, reachOf } from "./poses.js";
import { placed } from "./state.js";
import { TableKeys } from "./table_keys.js";

const UNSURE = 0.8;
const HANDLE = 30; // px above what is selected
export const GRIP = 15; // px around the handle that count as it

export class Table {
  constructor(root, actions) {
    this.root = root;
    this.actions = actions; // { select(ids), place(poses, words, tag), snap(id, fit), say(words), warmUp(id) }
    this.canvas = root.querySelector("canvas");
    this.camera = new Camera();
    this.chosen = [];
    this.ghosts = [];
    this.held = null; // poses of what is being moved, over those of the step
    this.tinted = true;
    this.keys = new TableKeys(this, root.querySelector("[role=application]"));
    this.gestures = new Gestures(this);
    new ResizeObserver(() => this.resized()).observe(root);
  }

  // ------------------------------------------------------------------------------------------ what is on it

  open(puzzle) {
    this.close();
    this.puzzle = puzzle;
    this.sizes = new Map(puzzle.fragments.map((f) => [f.id, f]));
    this.aside = new Aside(puzzle, (id) => this.bitmaps.content(id));
    this.bitmaps = new Bitmaps(puzzle, (all) => this.loaded(all));
    this.fresh = true;
  }

  close() {
    this.bitmaps?.close();
    this.step = null;
    this.chosen = [];
    this.ghosts = [];
    this.held = null;
  }

  loaded(all) {
    if (all && this.step) {
      this.aside.settle(this.step, this.placedBox(), true);
      if (!this.touched) this.fit();
    }
    this.still = null;
    this.draw();
  }

  show(step, live = false) {
    const first = this.fresh || this.hidden;
    this.fresh = false;
    this.hidden = false;
    Object.assign(this, { step, live, held: null, still: null });
    this.chosen = this.chosen.filter((id) => this.sizes.has(id));
    this.aside.settle(step, this.placedBox());
    if (first) {
      this.touched = false;
      this.resized();
      this.fit();
    }
    this.keys.show(step);
    this.draw();
  }

  hide() {
    this.hidden = true;
  }

  pose(id) {
    return this.held?.[id] ?? poseOf(this.step, id) ?? this.aside.pose(id);
  }

  onTable(id) {
    return poseOf(this.step, id) != null;
  }

  placedBox() {
    return this.boxOf(this.puzzle.fragments.map((f) => f.id).filter((id) => this.onTable(id)));
  }

  // The box around the visible parts of some fragments, or null.
  boxOf(ids) {
    let box = null;
    for (const id of ids) {
      const [x, y, w, h] = this.bodyOf(id);
      const one = [x - w, y - h, x + w, y + h];
      box = box
        ? [Math.min(box[0], one[0]), Math.min(box[1], one[1]), Math.max(box[2], one[2]), Math.max(box[3], one[3])]
        : one;
    }
    return box;
  }

  // Middle and half sides of what can be seen of a fragment as it lies.
  bodyOf(id) {
    const { width, height } = this.sizes.get(id);
    const [left, top, right, bottom] = this.bitmaps.content(id);
    const pose = this.pose(id);
    const [dx, dy] = act(pose.angle, [((left + right) / 2 - 0.5) * width, ((top + bottom) / 2 - 0.5) * height]);
    const [w, h] = reachOf({ width: (right - left) * width, height: (bottom - top) * height }, pose.angle);
    return [pose.x + dx, pose.y + dy, w, h];
  }

  // ------------------------------------------------------------------------------------------ what is seen of it

  resized() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !height) return;
    const dense = window.devicePixelRatio || 1;
    const grown = this.camera.width <= 1;
    Object.assign(this.camera, { width, height });
    Object.assign(this.canvas, { width: Math.round(width * dense), height: Math.round(height * dense) });
    this.dense = dense;
    this.still = null;
    if (this.step && (grown || !this.touched)) this.fit();
    this.draw();
  }

  fit() {
    const box = this.boxOf(this.puzzle.fragments.map((f) => f.id));
    if (box) this.camera.fit(box);
    this.moved();
  }

  zoom(factor, sx, sy) {
    this.touched = true;
    this.camera.zoom(factor, sx, sy);
    this.moved();
  }

  pan(sx, sy) {
    this.touched = true;
    this.camera.pan(sx, sy);
    this.moved();
  }

  moved() {
    this.still = null;
    this.draw();
  }

  // ------------------------------------------------------------------------------------------ what is chosen

  choose(ids) {
    this.chosen = ids;
    this.still = null;
    this.keys.mark();
    this.draw();
    this.actions.select(ids);
  }

  setGhosts(ghosts) {
    this.ghosts = ghosts;
    this.draw();
  }

  hold(poses) {
    if (!this.held !== !poses) this.still = null;
    this.held = poses;
    this.draw();
  }

  // ------------------------------------------------------------------------------------------ what is where

  hit(sx, sy) {
    const at = this.camera.toTable(sx, sy);
    const order = this.order();
    for (let k = order.length - 1; k >= 0; k -= 1) if (this.covers(order[k], at, this.pose(order[k]))) return order[k];
    return null;
  }

  hitGhost(sx, sy) {
    const at = this.camera.toTable(sx, sy);
    return this.ghosts.find((ghost) => this.covers(ghost.id, at, ghost)) ?? null;
  }

  covers(id, [x, y], pose) {
    const { width, height } = this.sizes.get(id);
    const [dx, dy] = act(-pose.angle, [x - pose.x, y - pose.y]);
    return this.bitmaps.covers(id, dx / width + 0.5, dy / height + 0.5);
  }

  // Where the handle that turns is on the screen, and the middle that it turns about on the table.
  handle() {
    const ids = this.chosen.filter((id) => this.onTable(id));
    if (!ids.length || this.live) return null;
    const middle = middleOf(ids.map((id) => this.pose(id)));
    const box = this.boxOf(ids);
    const [sx, top] = this.camera.toScreen(middle[0], box[1]);
    return { at: [sx, Math.max(GRIP + 3, top - HANDLE)], from: [sx, top], middle };
  }

  // ------------------------------------------------------------------------------------------ drawing

  draw() {
    if (this.waiting || !this.step || this.hidden) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  // Those beside the table lie below, those on it in the puzzle's order, as in the assembled picture; what is chosen on
  // top, so that all of it can be seen.
  order() {
    const chosen = new Set(this.chosen);
    const rank = (id) => (chosen.has(id) ? 2 : Number(this.onTable(id)));
    const ranked = this.puzzle.fragments.map(({ id }) => [rank(id), id]);
    return [0, 1, 2].flatMap((wanted) => ranked.filter(([r]) => r === wanted).map(([, id]) => id));
  }

  paint() {
    if (!this.step || this.canvas.width < 2) return;
    const context = this.canvas.getContext("2d");
    const colours = palette();
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (!this.still) this.still = this.paintStill(colours);
    context.fillStyle = colours.table;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.still, 0, 0);
    this.toTable(context);
    for (const ghost of this.ghosts) drawGhost(context, this, ghost, colours);
    for (const id of Object.keys(this.held ?? {})) this.paintOne(context, id, colours);
    context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
    for (const [k, ghost] of this.ghosts.entries()) drawBadge(context, this.camera.toScreen(ghost.x, ghost.y), k + 1, colours);
    const handle = this.handle();
    if (handle) drawHandle(context, handle, colours);
    this.gestures.paint(context, colours);
    this.root.dataset.frames = String(Number(this.root.dataset.frames ?? 0) + 1);
  }

  // Everything but what moves, once.
  paintStill(colours) {
    const still = this.layer ?? (this.layer = new OffscreenCanvas(1, 1));
    if (still.width !== this.canvas.width) still.width = this.canvas.width;
    if (still.height !== this.canvas.height) still.height = this.canvas.height;
    const context = still.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, still.width, still.height);
    this.toTable(context);
    this.aside.paint(context, this.camera, colours);
    for (const id of this.order()) if (!this.held?.[id]) this.paintOne(context, id, colours);
    return still;
  }

  toTable(context) {
    const k = this.camera.k * this.dense;
    this.base = [k, -this.camera.x * k, -this.camera.y * k];
    context.setTransform(k, 0, 0, k, this.base[1], this.base[2]);
    context.imageSmoothingEnabled = true;
  }

  // The context so that the fragment's picture covers [-1/2, 1/2] x [-1/2, 1/2].
  frame(context, id, pose) {
    const { width, height } = this.sizes.get(id);
    const [k, left, top] = this.base;
    const a = clockwise(pose.angle);
    const [cos, sin] = [Math.cos(a), Math.sin(a)];
    const [x, y] = [k * pose.x + left, k * pose.y + top];
    context.setTransform(k * width * cos, k * width * sin, -k * height * sin, k * height * cos, x, y);
  }

  paintOne(context, id, colours) {
    const pose = this.pose(id);
    const { width, height } = this.sizes.get(id);
    if (!this.camera.sees([pose.x, pose.y], Math.hypot(width, height) / 2)) return;
    const bitmap = this.bitmaps.get(id, width * this.camera.k * this.dense);
    if (this.chosen.includes(id) && !this.live) drawRim(context, this, id, pose, colours);
    this.frame(context, id, pose);
    context.globalAlpha = this.step.excluded.includes(id) ? 0.4 : 1;
    if (bitmap) context.drawImage(bitmap, -0.5, -0.5, 1, 1);
    else {
      context.fillStyle = colours.line;
      context.fillRect(-0.3, -0.3, 0.6, 0.6);
    }
    const sure = placed(this.step, id)?.confidence;
    if (this.tinted && !this.live && sure != null && sure < UNSURE && this.onTable(id)) {
      const striped = this.bitmaps.shape(id, "stripes", (of) => stripes(of, colours));
      context.globalAlpha = 0.35 + 0.45 * (1 - sure);
      if (striped) context.drawImage(striped, -0.5, -0.5, 1, 1);
    }
    context.globalAlpha = 1;
    if (this.step.pinned.includes(id) || this.step.excluded.includes(id)) {
      context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
      const kind = this.step.excluded.includes(id) ? "out" : "locked";
      drawBadge(context, this.camera.toScreen(pose.x, pose.y), kind, colours);
    }
  }
}
