// A photograph with outlines over it, and the pointer on them; what a gesture means is the review's matter.

import { Camera } from "./camera.js";
import { palette } from "./paint.js";

const STIRRED = 4; // px
const NEAR = 7; // px to an outline that count as inside

export class OutlineView {
  constructor(root, actions) {
    this.root = root;
    this.actions = actions; // { choose(k, more), stroke(points), point(x, y), tool(), radius() }
    this.canvas = root.querySelector("canvas");
    this.camera = new Camera();
    this.pointers = new Map();
    for (const [type, act] of [["pointerdown", "down"], ["pointermove", "move"], ["pointerup", "up"], ["pointercancel", "up"]]) {
      this.canvas.addEventListener(type, (event) => this[act](event));
    }
    this.canvas.addEventListener("pointerleave", () => this.hover(null));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => this.resized()).observe(root);
  }

  async open(sheet) {
    this.sheet = sheet;
    this.bitmap = null;
    this.resized();
    this.fit();
    const answer = await fetch(`/api/photographs/${sheet.id}/picture`);
    if (answer.ok && this.sheet === sheet) this.bitmap = await createImageBitmap(await answer.blob());
    this.draw();
  }

  show(outlines, chosen) {
    this.outlines = outlines.map(({ points }) => {
      const path = new Path2D();
      points.forEach(([x, y], k) => (k ? path.lineTo(x, y) : path.moveTo(x, y)));
      path.closePath();
      return path;
    });
    this.points = outlines.map(({ points }) => points);
    this.chosen = new Set(chosen);
    this.draw();
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !height) return;
    this.dense = window.devicePixelRatio || 1;
    const grown = this.camera.width <= 1;
    Object.assign(this.camera, { width, height });
    Object.assign(this.canvas, { width: Math.round(width * this.dense), height: Math.round(height * this.dense) });
    if (grown && this.sheet) this.fit();
    this.draw();
  }

  fit() {
    this.camera.fit([0, 0, this.sheet.width, this.sheet.height], 12);
    this.draw();
  }

  zoom(factor, ...at) {
    this.camera.zoom(factor, ...at);
    this.draw();
  }

  draw() {
    if (this.waiting || !this.sheet) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.paint();
    });
  }

  paint() {
    if (!this.sheet) return;
    const context = this.canvas.getContext("2d");
    const colours = palette();
    const { camera, dense, sheet } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = colours.table;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const k = camera.k * dense;
    context.setTransform(k, 0, 0, k, -camera.x * k, -camera.y * k);
    if (this.bitmap) context.drawImage(this.bitmap, 0, 0, sheet.width, sheet.height);
    for (const [at, path] of (this.outlines ?? []).entries()) {
      const on = this.chosen.has(at);
      context.lineJoin = "round";
      context.strokeStyle = "white";
      context.lineWidth = (on ? 6 : 4) / camera.k;
      context.stroke(path);
      context.strokeStyle = on ? "#d6182a" : "#1a1a1a";
      context.lineWidth = (on ? 3 : 1.8) / camera.k;
      context.stroke(path);
      if (on) {
        context.fillStyle = "rgb(214 24 42 / 16%)";
        context.fill(path);
      }
    }
    context.setTransform(dense, 0, 0, dense, 0, 0);
    this.paintNumbers(context, colours);
    this.paintStroke(context, colours);
    this.root.dataset.frames = String(Number(this.root.dataset.frames ?? 0) + 1);
    this.root.dataset.view = JSON.stringify([camera.x, camera.y, camera.k]);
  }

  paintNumbers(context) {
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [at, points] of (this.points ?? []).entries()) {
      const [x, y] = this.camera.toScreen(...middle(points));
      context.fillStyle = "rgb(255 255 255 / 88%)";
      context.beginPath();
      context.arc(x, y, 10, 0, 2 * Math.PI);
      context.fill();
      context.fillStyle = "#1a1a1a";
      context.fillText(String(at + 1), x, y + 0.5);
    }
  }

  paintStroke(context, colours) {
    const tool = this.actions.tool();
    const brush = tool === "add" || tool === "erase";
    const stroke = this.drag?.stroke;
    context.strokeStyle = tool === "erase" ? colours.warn : colours.accent;
    context.lineCap = context.lineJoin = "round";
    if (stroke) {
      context.globalAlpha = brush ? 0.55 : 1;
      context.lineWidth = brush ? 2 * this.actions.radius() * this.camera.k : 2.5;
      context.beginPath();
      for (const point of stroke) context.lineTo(...this.camera.toScreen(...point));
      context.stroke();
      context.globalAlpha = 1;
    } else if (brush && this.at) {
      context.lineWidth = 1.5;
      context.beginPath();
      context.arc(...this.at, this.actions.radius() * this.camera.k, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  // ------------------------------------------------------------------------------------------ the pointer

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(at) {
    this.at = at;
    this.draw();
  }

  hit(x, y) {
    const context = this.canvas.getContext("2d");
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.lineWidth = (2 * NEAR) / this.camera.k;
    const inside = (this.outlines ?? []).findLastIndex((path) => context.isPointInPath(path, x, y));
    const near = (this.outlines ?? []).findLastIndex((path) => context.isPointInStroke(path, x, y));
    context.restore();
    return inside >= 0 ? inside : near;
  }

  down(event) {
    if (!this.sheet || event.button > 1) return;
    this.root.querySelector("[role=application]").focus({ preventScroll: true });
    event.preventDefault();
    this.canvas.setPointerCapture(event.pointerId);
    const at = this.place(event);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size > 1) {
      this.drag = null;
      this.draw();
      return;
    }
    const tool = this.actions.tool();
    const point = this.camera.toTable(...at);
    const drawing = !["select", "background"].includes(tool) && event.button === 0;
    this.drag = { at, tool, point, stroke: drawing ? [point] : null, more: event.shiftKey || event.ctrlKey, on: false };
    this.draw();
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    const now = this.place(event);
    this.hover(now);
    if (!before) return;
    if (this.pointers.size === 2) {
      const [, other] = [...this.pointers].find(([id]) => id !== event.pointerId);
      const far = (p) => Math.max(12, Math.hypot(p[0] - other[0], p[1] - other[1]));
      this.pointers.set(event.pointerId, now);
      this.camera.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      this.zoom(far(now) / far(before), ...now);
      return;
    }
    this.pointers.set(event.pointerId, now);
    const { drag } = this;
    if (!drag) return;
    if (!drag.on && Math.hypot(now[0] - drag.at[0], now[1] - drag.at[1]) < STIRRED) return;
    drag.on = true;
    if (drag.stroke) drag.stroke.push(this.camera.toTable(...now));
    else this.camera.pan(now[0] - before[0], now[1] - before[1]);
    this.draw();
  }

  up(event) {
    this.pointers.delete(event.pointerId);
    const { drag } = this;
    this.drag = null;
    this.draw();
    if (!drag || event.type === "pointercancel") return;
    if (drag.stroke) this.actions.stroke(drag.stroke, drag.point, drag.on);
    else if (drag.tool === "background" && !drag.on) this.actions.point(...drag.point);
    else if (!drag.on) this.actions.choose(this.hit(...drag.point), drag.more);
  }

  wheel(event) {
    if (!this.sheet) return;
    event.preventDefault();
    this.zoom(Math.exp(-0.0018 * Math.max(-240, Math.min(240, event.deltaY))), ...this.place(event));
  }
}

export function middle(points) {
  const xs = points.map((p) => p[0]);
  const ys = points.map((p) => p[1]);
  return [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
}
