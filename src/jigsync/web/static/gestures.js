// Mouse, pen and fingers on the free canvas.
//
//   press a fragment and move    it and all that is chosen with it follow; near a proposed place it snaps there
//   press the handle and move    what is chosen turns; with Shift by 15 degrees
//   press the table and move     the view follows; with Shift a frame is drawn and what is in it is chosen
//   wheel                        zoom; with Shift, or while fragments are held, turn
//   two fingers                  zoom and move the view

import { drawFrame } from "./paint.js";
import { shifted, turnedAbout } from "./poses.js";
import { GRIP } from "./table.js";

const STIRRED = 4; // px before a press becomes a drag
const SNAP = 26; // px on the screen within which a proposed place takes a fragment
const STEP = 15; // degrees

export class Gestures {
  constructor(table) {
    this.table = table;
    this.pointers = new Map();
    this.drag = null;
    const { canvas } = table;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.cancel(event));
    canvas.addEventListener("dblclick", (event) => this.twice(event));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => this.drag && event.preventDefault());
  }

  at(event) {
    const box = this.table.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    const { table } = this;
    if (!table.step || (event.pointerType === "mouse" && event.button > 1)) return;
    table.keys.focus();
    event.preventDefault();
    table.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.at(event));
    if (this.pointers.size === 2) {
      this.letGo();
      return;
    }
    const [x, y] = this.at(event);
    const handle = table.handle();
    if (handle && Math.hypot(x - handle.at[0], y - handle.at[1]) <= GRIP) {
      this.drag = { kind: "turn", x, y, middle: handle.middle, poses: this.chosenPoses() };
      if (!this.movable()) this.drag = null;
      return;
    }
    const ghost = event.button === 0 ? table.hitGhost(x, y) : null;
    const id = ghost || event.button === 1 ? null : table.hit(x, y);
    const more = event.shiftKey || event.ctrlKey || event.metaKey;
    if (!id) {
      const kind = ghost ? "ghost" : event.shiftKey ? "frame" : "view";
      this.drag = { kind, x, y, ghost, from: [x, y], more };
      return;
    }
    if (more) {
      table.choose(table.chosen.includes(id) ? table.chosen.filter((other) => other !== id) : [...table.chosen, id]);
      return;
    }
    const alone = !table.chosen.includes(id);
    if (alone) table.choose([id]);
    this.drag = { kind: "move", x, y, id, on: false, poses: this.chosenPoses(), alone };
  }

  chosenPoses() {
    return Object.fromEntries(this.table.chosen.map((id) => [id, this.table.pose(id)]));
  }

  movable() {
    const { table } = this;
    if (table.live) return false;
    const locked = table.chosen.find((id) => table.step.pinned.includes(id));
    if (locked) table.actions.say(`${locked} is locked: unlock it with P to move it.`);
    return !locked;
  }

  move(event) {
    const { table, drag } = this;
    const before = this.pointers.get(event.pointerId);
    const now = this.at(event);
    if (!before) return;
    if (this.pointers.size === 2) {
      this.pinch(event.pointerId, before, now);
      return;
    }
    this.pointers.set(event.pointerId, now);
    if (!drag) return;
    const [dx, dy] = [now[0] - drag.x, now[1] - drag.y];
    if (!drag.on && Math.hypot(dx, dy) < STIRRED) return;
    if (!drag.on) {
      drag.on = true;
      if (drag.kind === "move" && !this.movable()) this.drag = null;
      else if (drag.kind === "move" && table.chosen.length === 1) table.actions.warmUp(drag.id);
      if (!this.drag) return;
    }
    if (drag.kind === "view" || drag.kind === "ghost") {
      table.pan(now[0] - before[0], now[1] - before[1]);
    } else if (drag.kind === "frame") {
      drag.now = now;
      table.draw();
    } else if (drag.kind === "turn") {
      this.turnTo(now, event.shiftKey);
    } else this.follow(dx, dy);
  }

  follow(dx, dy) {
    const { table, drag } = this;
    const k = table.camera.k;
    const poses = Object.fromEntries(Object.entries(drag.poses).map(([id, pose]) => [id, shifted(pose, dx / k, dy / k)]));
    drag.snap = null;
    for (const ghost of table.ghosts) {
      ghost.near = false;
      const pose = poses[ghost.id];
      if (!pose || table.chosen.length !== 1 || drag.snap) continue;
      if (Math.hypot(pose.x - ghost.x, pose.y - ghost.y) * k > SNAP) continue;
      ghost.near = true;
      drag.snap = ghost;
      poses[ghost.id] = { angle: ghost.angle, x: ghost.x, y: ghost.y };
    }
    drag.now = poses;
    table.hold(poses);
  }

  turnTo([x, y], stepped) {
    const { table, drag } = this;
    const [mx, my] = table.camera.toScreen(...drag.middle);
    const angle = (px, py) => (-Math.atan2(py - my, px - mx) * 180) / Math.PI;
    let degrees = angle(x, y) - angle(drag.x, drag.y);
    if (stepped) degrees = STEP * Math.round(degrees / STEP);
    this.turnBy(degrees);
  }

  turnBy(degrees) {
    const { table, drag } = this;
    drag.now = Object.fromEntries(
      Object.entries(drag.poses).map(([id, pose]) => [id, turnedAbout(pose, drag.middle, degrees)]),
    );
    table.hold(drag.now);
  }

  pinch(moved, before, now) {
    const { table } = this;
    const [, other] = [...this.pointers].find(([id]) => id !== moved);
    const far = (p) => Math.max(12, Math.hypot(p[0] - other[0], p[1] - other[1]));
    const mid = (p) => [(p[0] + other[0]) / 2, (p[1] + other[1]) / 2];
    this.pointers.set(moved, now);
    table.pan(mid(now)[0] - mid(before)[0], mid(now)[1] - mid(before)[1]);
    table.zoom(far(now) / far(before), ...mid(now));
  }

  up(event) {
    const { table, drag } = this;
    this.pointers.delete(event.pointerId);
    this.drag = null;
    if (!drag) return;
    if (drag.kind === "ghost" && !drag.on) table.actions.snap(drag.ghost);
    else if (drag.kind === "view" && !drag.on) table.choose([]);
    else if (drag.kind === "frame") this.chooseInside(drag);
    else if (drag.kind === "move" && !drag.on) {
      if (!drag.alone && table.chosen.length > 1) table.choose([drag.id]);
    } else if (drag.now) {
      for (const ghost of table.ghosts) ghost.near = false;
      if (drag.snap) table.actions.snap(drag.snap);
      else table.actions.place(drag.now, drag.kind === "turn" ? "turned" : "moved");
    }
  }

  chooseInside(drag) {
    const { table } = this;
    const [a, b] = [drag.from, drag.now ?? drag.from];
    const [x0, y0] = table.camera.toTable(Math.min(a[0], b[0]), Math.min(a[1], b[1]));
    const [x1, y1] = table.camera.toTable(Math.max(a[0], b[0]), Math.max(a[1], b[1]));
    const inside = table.order().filter((id) => {
      const [x, y] = table.bodyOf(id);
      return x > x0 && x < x1 && y > y0 && y < y1;
    });
    table.choose([...new Set([...table.chosen, ...inside])]);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.letGo();
  }

  // Puts back what is held.
  letGo() {
    const held = this.drag?.on;
    this.drag = null;
    this.table.hold(null);
    return Boolean(held);
  }

  twice(event) {
    const id = this.table.hit(...this.at(event));
    if (id) this.table.keys.chooseGroup([id]);
  }

  wheel(event) {
    const { table, drag } = this;
    if (!table.step) return;
    event.preventDefault();
    const way = Math.sign(event.deltaY || event.deltaX);
    if (drag?.kind === "move" && drag.on) {
      // Turned about the pointer's fragment, the drag goes on from there.
      const { x, y } = drag.poses[drag.id];
      drag.poses = Object.fromEntries(
        Object.entries(drag.poses).map(([id, pose]) => [id, turnedAbout(pose, [x, y], -way * (event.altKey ? STEP : 1))]),
      );
      const [sx, sy] = this.at(event);
      this.follow(sx - drag.x, sy - drag.y);
    } else if ((event.shiftKey || event.altKey) && table.chosen.length) {
      table.keys.turn(-way * (event.altKey ? STEP : 1));
    } else {
      const notch = event.deltaMode === 0 ? Math.max(-240, Math.min(240, event.deltaY)) / 100 : way;
      table.zoom(Math.exp(-0.18 * notch), ...this.at(event));
    }
  }

  paint(context, colours) {
    const { drag } = this;
    if (drag?.kind === "frame" && drag.now) drawFrame(context, [...drag.from, ...drag.now], colours);
  }
}

