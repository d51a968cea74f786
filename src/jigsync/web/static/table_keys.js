// The free canvas by keyboard and for screen readers: a list of all fragments that says of each where it lies.
//
//   N, Shift N    the next fragment, the one before        arrows    nudge by 1 px, with Shift by 10; or move the view
//   R, T          turn clockwise by 15, by 1 degree; with Shift the other way
//   A             all of its group                         + - 0     zoom, show everything

import { groupOf, poseOf } from "./places.js";
import { middleOf, shifted, turnedAbout } from "./poses.js";
import { describePlace } from "./words.js";

const FAR = 60; // px that an arrow moves the view

export class TableKeys {
  constructor(table, root) {
    this.table = table;
    this.root = root;
    this.list = root.querySelector("[role=listbox]");
    root.addEventListener("keydown", (event) => this.key(event));
  }

  focus() {
    this.root.focus({ preventScroll: true });
  }

  // One entry for each fragment; only those whose words change are touched.
  show(step) {
    const { puzzle } = this.table;
    if (this.puzzle !== puzzle) {
      this.puzzle = puzzle;
      this.list.replaceChildren(
        ...puzzle.fragments.map(({ id }) => {
          const item = document.createElement("li");
          item.id = `on-table-${id}`;
          item.setAttribute("role", "option");
          item.setAttribute("aria-selected", "false");
          item.dataset.id = id;
          return item;
        }),
      );
    }
    for (const item of this.list.children) {
      const words = describePlace(step, item.dataset.id);
      if (item.textContent !== words) item.textContent = words;
    }
    this.mark();
  }

  mark() {
    const chosen = new Set(this.table.chosen);
    for (const item of this.list.children) {
      const on = String(chosen.has(item.dataset.id));
      if (item.getAttribute("aria-selected") !== on) item.setAttribute("aria-selected", on);
    }
    const last = this.table.chosen.at(-1);
    if (last) this.root.setAttribute("aria-activedescendant", `on-table-${last}`);
    else this.root.removeAttribute("aria-activedescendant");
  }

  next(way, more) {
    const { table } = this;
    const ids = table.puzzle.fragments.map((f) => f.id);
    const at = ids.indexOf(table.chosen.at(-1));
    const id = ids[(at + way + ids.length + (at < 0 && way < 0 ? 1 : 0)) % ids.length];
    table.choose(more ? [...new Set([...table.chosen, id])] : [id]);
    this.bringIn(id);
    table.actions.say(describePlace(table.step, id));
  }

  // Moves the view when a fragment is out of sight.
  bringIn(id) {
    const { camera } = this.table;
    const { x, y } = this.table.pose(id);
    const [sx, sy] = camera.toScreen(x, y);
    const away = (at, size) => (at < 0.08 * size ? 0.2 * size - at : at > 0.92 * size ? 0.8 * size - at : 0);
    const [dx, dy] = [away(sx, camera.width), away(sy, camera.height)];
    if (dx || dy) this.table.pan(dx, dy);
  }

  chooseGroup(ids = this.table.chosen) {
    const { table } = this;
    if (!ids.length || !table.step.solution) return;
    const all = groupOf(table.step, ids);
    table.choose(all);
    table.actions.say(`${all.length} fragments of the group are chosen.`);
  }

  nudge(dx, dy) {
    const { table } = this;
    if (!table.gestures.movable()) return;
    const poses = Object.fromEntries(table.chosen.map((id) => [id, shifted(table.pose(id), dx, dy)]));
    table.actions.place(poses, "nudged", "nudge");
  }

  turn(degrees) {
    const { table } = this;
    if (!table.chosen.length || !table.gestures.movable()) return;
    const now = table.chosen.map((id) => table.pose(id));
    const middle = table.chosen.length === 1 ? [now[0].x, now[0].y] : middleOf(now);
    const poses = Object.fromEntries(table.chosen.map((id, k) => [id, turnedAbout(now[k], middle, degrees)]));
    table.actions.place(poses, "turned", "turn");
  }

  key(event) {
    const { table } = this;
    if (!table.step || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (letter !== "a") return;
      table.choose(table.puzzle.fragments.map((f) => f.id).filter((id) => poseOf(table.step, id)));
      event.preventDefault();
      return;
    }
    const back = event.shiftKey ? 1 : -1;
    const actions = {
      n: () => this.next(-back, false),
      " ": () => this.next(-back, true),
      a: () => this.chooseGroup(),
      r: () => this.turn(15 * back),
      t: () => this.turn(back),
      "+": () => table.zoom(1.25),
      "=": () => table.zoom(1.25),
      "-": () => table.zoom(0.8),
      0: () => table.fit(),
    };
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key];
      const far = event.shiftKey ? 10 : 1;
      if (table.chosen.length) this.nudge(far * dx, far * dy);
      else table.pan(-FAR * dx, -FAR * dy);
    } else if (actions[letter]) actions[letter]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
