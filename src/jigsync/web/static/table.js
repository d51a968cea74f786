// The free canvas: fragments at their poses, those without one beside them. It draws and finds; gestures.js and
// table_keys.js act, and tell the workbench.

import { Aside } from "./aside.js";
import { Bitmaps } from "./bitmaps.js";
import { Camera } from "./camera.js";
import { Gestures } from "./gestures.js";
import { Layer } from "./layer.js";
import { MOST_RIMS, drawBadge, drawFrame, drawGhost, drawHandle, drawRim, palette, stripes } from "./paint.js";
import { poseOf } from "./places.js";
import { act, clockwise, middleOf, reachOf } from "./poses.js";
import { placed } from "./state.js";
import { TableKeys } from "./table_keys.js";

const UNSURE = 0.8;
const HANDLE = 30; // px above what is selected
const MANY = 150; // fragments from which on a view that moves is painted anew only once it rests
const REST = 120; // ms
const FAR = 0.3; // of the view, or of its scale, beyond which it is painted anew while it moves
const FEW = 40; // fragments that are moved one by one; more are moved as one picture
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
    this.still = new Layer(); // all that does not move
    this.lifted = new Layer(); // what moves, where it is much
    this.stale = 0; // what is painted is out of date once this is larger than it was
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
    delete this.root.dataset.loaded;
  }

  close() {
    this.bitmaps?.close();
    Object.assign(this, { step: null, chosen: [], ghosts: [], held: null, landed: null });
    this.still.forget();
    this.lifted.forget();
  }

  loaded(all) {
    if (all) this.root.dataset.loaded = "all";
    if (all && this.step) {
      this.aside.settle(this.step, this.placedBox(), true);
      if (!this.touched) this.fit();
    }
    this.stale += 1;
    this.draw();
  }

  show(step, live = false) {
    const first = this.fresh || this.hidden;
    this.fresh = false;
    this.hidden = false;
    const moved = Object.keys(this.held ?? {});
    Object.assign(this, { step, live, held: null });
    this.stale += 1;
    // Until all that lies still is painted anew, what was moved is drawn on top of it.
    this.landed = moved.length && moved.length <= FEW ? { ids: moved, since: this.stale } : null;
    this.picked = new Set(this.chosen);
    this.locked = new Set(step.pinned);
    this.excluded = new Set(step.excluded);
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
    this.stale += 1;
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

  // The view is another one: what is painted is shown from there, and painted anew.
  moved() {
    this.movedAt = performance.now();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.draw(), REST + 10);
    this.draw();
  }

  // Is what is painted still good enough to be shown from a view that moves?
  nearEnough(then, now) {
    if (this.puzzle.fragments.length < MANY || performance.now() - this.movedAt > REST) return false;
    const away = Math.max(Math.abs(then.x - now.x) / now.pixels[0], Math.abs(then.y - now.y) / now.pixels[1]) * now.k;
    return away < FAR && Math.abs(Math.log(then.k / now.k)) < FAR;
  }

  // All of it looks different now.
  repaint() {
    this.stale += 1;
    this.draw();
  }

  // ------------------------------------------------------------------------------------------ what is chosen

  choose(ids) {
    this.chosen = ids;
    this.picked = new Set(ids);
    this.stale += 1;
    this.keys.mark();
    this.draw();
    this.actions.select(ids);
  }

  setGhosts(ghosts) {
    this.ghosts = ghosts;
    this.draw();
  }

  // Moves fragments without deciding anything; all of them move as one.
  hold(poses) {
    if (!this.held !== !poses) {
      this.stale += 1;
      this.before = poses && Object.fromEntries(Object.keys(poses).map((id) => [id, this.pose(id)]));
      this.lifted.forget();
      this.landed = null;
    }
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
    return { at: [sx, Math.max(GRIP + 3, top - HANDLE)], from: [sx, top], middle, box };
  }

  // ------------------------------------------------------------------------------------------ drawing

  draw() {
    if (this.waiting || !this.step || this.hidden) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const begun = performance.now();
      this.paint();
      const { dataset } = this.root;
      dataset.longest = String(Math.max(Number(dataset.longest ?? 0), performance.now() - begun));
    });
  }

  // Those beside the table lie below, those on it in the puzzle's order, as in the assembled picture; what is chosen on
  // top, so that all of it can be seen.
  order() {
    const rank = (id) => (this.picked.has(id) ? 2 : Number(this.onTable(id)));
    const ranked = this.puzzle.fragments.map(({ id }) => [rank(id), id]);
    return [0, 1, 2].flatMap((wanted) => ranked.filter(([r]) => r === wanted).map(([, id]) => id));
  }

  get view() {
    const { camera, dense } = this;
    return { x: camera.x, y: camera.y, k: camera.k * dense, pixels: [this.canvas.width, this.canvas.height] };
  }

  paint() {
    if (!this.step || this.canvas.width < 2) return;
    const context = this.canvas.getContext("2d");
    const colours = palette();
    const { view } = this;
    this.refresh(view, colours);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.table;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.still.draw(context, view);
    for (const ghost of this.ghosts) drawGhost(context, this, ghost, colours, view);
    this.paintHeld(context, colours, view);
    this.paintMarks(context, colours);
    if (this.still.busy || this.lifted.busy) this.draw();
  }

  paintMarks(context, colours) {
    context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
    for (const [k, ghost] of this.ghosts.entries()) {
      drawBadge(context, this.camera.toScreen(ghost.x, ghost.y), k + 1, colours);
    }
    const handle = this.handle();
    if (handle && this.chosen.length > MOST_RIMS) {
      const [left, top, right, bottom] = handle.box;
      drawFrame(context, [...this.camera.toScreen(left, top), ...this.camera.toScreen(right, bottom)], colours);
    }
    if (handle) drawHandle(context, handle, colours);
    this.gestures.paint(context, colours);
    this.tell(handle);
  }

  // Paints a part of what is out of date.
  refresh(view, colours) {
    const { still, painted } = this;
    const same = painted?.stale === this.stale;
    if (!same || !sameView(painted.view, view)) {
      if (!same || (!still.busy && !this.nearEnough(painted.view, view))) {
        this.painted = { stale: this.stale, view };
        still.begin(view, ["", ...this.order().filter((id) => !this.held?.[id])], !same);
      }
    }
    const part = (context, id, of) => {
      if (id) this.paintOne(context, id, colours, of, this.pose(id));
      else this.aside.paint(context, of, this.dense, colours);
    };
    if (still.work(part) && this.landed && this.painted.stale >= this.landed.since) this.landed = null;
  }

  paintHeld(context, colours, view) {
    const ids = Object.keys(this.held ?? {});
    if (ids.length <= FEW) {
      for (const id of this.landed?.ids ?? []) this.paintOne(context, id, colours, view, this.pose(id));
      for (const id of ids) this.paintOne(context, id, colours, view, this.held[id]);
      return;
    }
    const { lifted } = this;
    if (!lifted.front && !lifted.busy) lifted.begin(view, ids, true);
    lifted.work((of, id, from) => this.paintOne(of, id, colours, from, this.before[id]));
    lifted.draw(context, view, this.motion(ids[0]));
  }

  // The motion of the table that took a fragment from where it was to where it is held.
  motion(id) {
    const [from, to] = [this.before[id], this.held[id]];
    const angle = to.angle - from.angle;
    const [x, y] = act(angle, [from.x, from.y]);
    return { angle, x: to.x - x, y: to.y - y };
  }

  // Where things are on the screen, for whoever cannot see a canvas: tests and measurements.
  tell(handle) {
    const { dataset } = this.root;
    const last = this.chosen.at(-1);
    dataset.frames = String(Number(dataset.frames ?? 0) + 1);
    dataset.scale = String(this.camera.k);
    dataset.chosen = JSON.stringify(last ? this.camera.toScreen(...this.bodyOf(last).slice(0, 2)) : null);
    dataset.handle = JSON.stringify(handle?.at ?? null);
  }

  // The context so that the fragment's picture covers [-1/2, 1/2] x [-1/2, 1/2].
  frame(context, id, pose, view) {
    const { width, height } = this.sizes.get(id);
    const a = clockwise(pose.angle);
    const [cos, sin] = [view.k * Math.cos(a), view.k * Math.sin(a)];
    const [x, y] = [view.k * (pose.x - view.x), view.k * (pose.y - view.y)];
    context.setTransform(width * cos, width * sin, -height * sin, height * cos, x, y);
  }

  paintOne(context, id, colours, view, pose) {
    const { width, height } = this.sizes.get(id);
    const reach = (view.k * Math.hypot(width, height)) / 2;
    const [x, y] = [view.k * (pose.x - view.x), view.k * (pose.y - view.y)];
    if (x < -reach || y < -reach || x > view.pixels[0] + reach || y > view.pixels[1] + reach) return;
    const bitmap = this.bitmaps.get(id, width * view.k);
    const out = this.excluded.has(id);
    if (this.picked.has(id) && !this.live && this.picked.size <= MOST_RIMS) drawRim(context, this, id, pose, colours, view);
    this.frame(context, id, pose, view);
    context.globalAlpha = out ? 0.4 : 1;
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
    if (out || this.locked.has(id)) {
      context.setTransform(this.dense, 0, 0, this.dense, 0, 0);
      drawBadge(context, [x / this.dense, y / this.dense], out ? "out" : "locked", colours);
    }
  }
}

const sameView = (a, b) => a.x === b.x && a.y === b.y && a.k === b.k && `${a.pixels}` === `${b.pixels}`;
