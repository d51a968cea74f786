// The review of photographs: what was found is shown over them, put right, and made a puzzle of.
//
//   sheet = { id, name, width, height, notes, history }, history of [{ points, notes }]

import { drop, post } from "./api.js";
import { formOf } from "./intake.js";
import { OutlineView } from "./outline_view.js";
import { History } from "./state.js";

const $ = (id) => document.getElementById(id);
const KEYS = {
  select: "Click an outline to select it; Shift adds more. Drag to move the view.",
  split: "Draw a line through a fragment, from outside to outside.",
  draw: "Draw around a fragment that was not found.",
  redraw: "Draw around the selected fragment anew.",
  add: "Paint what is missing: it is added to the outline where you begin, or to the selected one.",
  erase: "Paint over what does not belong to the fragment where you begin, or to the selected one.",
  background: "Click a place that is background: everything is looked for anew.",
};

export class Review {
  constructor(bench, opened) {
    this.bench = bench;
    this.opened = opened; // gets the puzzle
    this.sheets = [];
    this.chosen = [];
    this.root = $("review-table").querySelector("[role=application]");
    this.list = this.root.querySelector("[role=listbox]");
    this.view = new OutlineView($("review-table"), {
      tool: () => this.tool,
      radius: () => this.radius,
      choose: (at, more) => this.pick(at, more),
      stroke: (points, start, moved) => this.stroke(points, start, moved),
      point: (x, y) => this.background(x, y),
    });
    this.listen();
  }

  get active() {
    return !$("review").hidden;
  }

  get tool() {
    return document.querySelector("[name=tool]:checked").value;
  }

  // In pixels of the photograph; the slider is in thousandths of its longer side.
  get radius() {
    return this.sheet ? ($("brush").valueAsNumber * Math.max(this.sheet.width, this.sheet.height)) / 2000 : 10;
  }

  get outlines() {
    return this.sheet.history.now;
  }

  async take(files) {
    this.files = files;
    const found = await post("/api/photographs", formOf(files, this.bench.about.limits));
    this.sheets = found.map((one) => ({ ...one, history: new History([one.outlines]) }));
    $("start").hidden = true;
    $("review").hidden = false;
    $("start-over").hidden = false;
    $("title").textContent = found.map((one) => one.name).join(", ");
    this.show(this.sheets[0]);
    $("review-use").focus();
  }

  close() {
    for (const sheet of this.sheets) drop(`/api/photographs/${sheet.id}`);
    this.sheets = [];
    this.sheet = this.view.sheet = null;
    $("review").hidden = true;
  }

  show(sheet) {
    this.sheet = sheet;
    this.chosen = [];
    this.view.open(sheet);
    this.update();
  }

  update() {
    const { outlines, sheet } = this;
    this.chosen = this.chosen.filter((at) => at < outlines.length);
    this.view.show(outlines, this.chosen);
    const all = this.sheets.reduce((sum, one) => sum + one.history.now.length, 0);
    $("review-use").disabled = all < 2;
    $("review-use").textContent = all < 2 ? "Use these fragments" : `Use these ${all} fragments`;
    $("review-cut").hidden = this.files.length > 1;
    $("review-undo").disabled = !sheet.history.canUndo;
    $("review-redo").disabled = !sheet.history.canRedo;
    $("review-merge").disabled = this.chosen.length < 2;
    $("review-drop").disabled = !this.chosen.length;
    $("review-text").textContent = KEYS[this.tool];
    $("brush-out").textContent = `${Math.round(2 * this.radius)} px`;
    $("review-table").className = `table ${this.tool}`;
    $("review-sheets").hidden = this.sheets.length < 2;
    $("review-sheets").replaceChildren(...this.sheets.map((one) => this.tab(one)));
    const notes = [...sheet.notes, ...outlines.flatMap(({ notes: said }, k) => said.map((note) => `${k + 1}: ${note}.`))];
    $("review-notes").replaceChildren(...notes.map((note) => entry("li", note)));
    this.list.replaceChildren(
      ...outlines.map((_, k) => {
        const item = entry("li", `fragment ${k + 1} of ${outlines.length}`);
        item.id = `outline-${k}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", String(this.chosen.includes(k)));
        return item;
      }),
    );
    if (this.chosen.length) this.root.setAttribute("aria-activedescendant", `outline-${this.chosen.at(-1)}`);
    else this.root.removeAttribute("aria-activedescendant");
  }

  tab(sheet) {
    const button = entry("button", `${sheet.name} (${sheet.history.now.length})`);
    button.type = "button";
    button.setAttribute("aria-pressed", String(sheet === this.sheet));
    button.addEventListener("click", () => this.show(sheet));
    return button;
  }

  // ------------------------------------------------------------------------------------------ what is done

  pick(at, more) {
    if (at < 0) this.chosen = more ? this.chosen : [];
    else if (!more) this.chosen = [at];
    else this.chosen = this.chosen.includes(at) ? this.chosen.filter((k) => k !== at) : [...this.chosen, at];
    this.update();
  }

  next(way, more) {
    const count = this.outlines.length;
    if (!count) return;
    const at = ((this.chosen.at(-1) ?? (way > 0 ? -1 : 0)) + way + count) % count;
    this.chosen = more ? [...new Set([...this.chosen, at])] : [at];
    this.update();
    this.bench.panels.say(`fragment ${at + 1} of ${count}`);
  }

  change(outlines, chosen, words) {
    this.sheet.history.push(outlines);
    this.chosen = chosen;
    this.update();
    this.bench.panels.say(words);
  }

  drop() {
    if (!this.chosen.length) return;
    this.change(this.outlines.filter((_, k) => !this.chosen.includes(k)), [], `${this.chosen.length} dropped.`);
  }

  // Replaces some outlines by what the server makes of them.
  async shape(request, ats, words) {
    const { sheet, outlines } = this;
    let made;
    try {
      const body = { ...request, outlines: ats.map((at) => outlines[at].points) };
      made = await post(`/api/photographs/${sheet.id}/shape`, body);
    } catch (error) {
      this.bench.panels.fail(error.message);
      return;
    }
    if (this.sheet !== sheet || this.outlines !== outlines) return;
    const first = ats.length ? Math.min(...ats) : outlines.length;
    const kept = outlines.map((outline, k) => (ats.includes(k) ? null : outline));
    const next = [...kept.slice(0, first), ...made, ...kept.slice(first)].filter(Boolean);
    this.change(next, made.map((_, k) => first + k), words);
  }

  merge() {
    if (this.chosen.length > 1) this.shape({ do: "merge" }, this.chosen, "They are one fragment now.");
  }

  stroke(points, start, moved) {
    const { tool, radius } = this;
    const under = this.view.hit(...start);
    const line = thinned(points);
    if (tool === "split") {
      const crossed = this.crossed(line);
      if (crossed < 0) this.bench.panels.fail("The line must go through a fragment, from outside to outside.");
      else this.shape({ do: "split", line }, [crossed], "Split.");
    } else if (tool === "draw" && moved) {
      this.shape({ do: "draw", line }, [], "A new fragment.");
    } else if (tool === "redraw" && moved) {
      if (this.chosen.length !== 1) this.bench.panels.fail("Select the one fragment that you want to redraw.");
      else this.shape({ do: "draw", line }, this.chosen, "Redrawn.");
    } else if (tool === "add") {
      const at = this.chosen.length === 1 ? this.chosen[0] : under;
      this.shape({ do: "add", line, radius }, at < 0 ? [] : [at], at < 0 ? "A new fragment." : "Added.");
    } else if (tool === "erase") {
      const at = this.chosen.length === 1 ? this.chosen[0] : under;
      if (at < 0) this.bench.panels.fail("Begin on a fragment, or select one.");
      else this.shape({ do: "erase", line, radius }, [at], "Taken off.");
    }
  }

  // The outline that most of a line lies in, the selected one first.
  crossed(line) {
    const hits = new Map();
    const steps = line.slice(1).flatMap(([x, y], k) => {
      const [a, b] = line[k];
      return Array.from({ length: 12 }, (_, n) => [a + ((x - a) * n) / 12, b + ((y - b) * n) / 12]);
    });
    for (const point of steps) {
      const at = this.view.hit(...point);
      if (at >= 0) hits.set(at, (hits.get(at) ?? 0) + 1);
    }
    if (this.chosen.length === 1 && hits.has(this.chosen[0])) return this.chosen[0];
    return [...hits].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
  }

  async background(x, y) {
    const { sheet } = this;
    try {
      const body = { x: Math.max(0, Math.round(x)), y: Math.max(0, Math.round(y)) };
      const found = await post(`/api/photographs/${sheet.id}/background`, body);
      if (this.sheet !== sheet) return;
      sheet.notes = found.notes;
      this.change(found.outlines, [], found.notes[0]);
    } catch (error) {
      this.bench.panels.fail(error.message);
    }
  }

  travel(way) {
    this.sheet.history[way]();
    this.chosen = [];
    this.update();
  }

  async use() {
    const sheets = this.sheets
      .filter((sheet) => sheet.history.now.length)
      .map((sheet) => ({ photograph: sheet.id, outlines: sheet.history.now.map(({ points }) => points) }));
    const name = this.sheets[0].name.replace(/\.[^.]*$/, "") || "photograph";
    $("review-use").disabled = true;
    try {
      const puzzle = await post("/api/photographs/puzzle", { name, sheets });
      this.close();
      this.opened(puzzle);
    } catch (error) {
      this.bench.panels.fail(error.message);
      $("review-use").disabled = false;
    }
  }

  // ------------------------------------------------------------------------------------------ wiring

  listen() {
    const click = (id, action) => $(id).addEventListener("click", action);
    click("review-use", () => this.use());
    click("review-cut", () => this.bench.cutter.open(this.files[0].file));
    click("review-undo", () => this.travel("undo"));
    click("review-redo", () => this.travel("redo"));
    click("review-merge", () => this.merge());
    click("review-drop", () => this.drop());
    click("review-in", () => this.view.zoom(1.25));
    click("review-out", () => this.view.zoom(0.8));
    click("review-fit", () => this.view.fit());
    for (const radio of document.querySelectorAll("[name=tool]")) radio.addEventListener("change", () => this.update());
    $("brush").addEventListener("input", () => this.update());
  }

  // A key of the whole page; true when it means something here.
  key(letter, event) {
    if (event.ctrlKey || event.metaKey) {
      if (letter !== "z" && letter !== "y") return false;
      this.travel(letter === "y" || event.shiftKey ? "redo" : "undo");
      return true;
    }
    if (letter === " " && event.target !== this.root) return false;
    const actions = {
      n: () => this.next(event.shiftKey ? -1 : 1, false),
      " ": () => this.next(1, true),
      m: () => this.merge(),
      delete: () => this.drop(),
      backspace: () => this.drop(),
      escape: () => this.pick(-1, false),
      "+": () => this.view.zoom(1.25),
      "-": () => this.view.zoom(0.8),
      0: () => this.view.fit(),
    };
    if (!actions[letter]) return false;
    actions[letter]();
    return true;
  }
}

const MOST = 4000; // points of a stroke

function thinned(points) {
  const every = Math.ceil(points.length / MOST);
  return points.filter((_, k) => k % every === 0 || k === points.length - 1).map((p) => p.map((v) => Math.round(4 * v) / 4));
}

function entry(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
