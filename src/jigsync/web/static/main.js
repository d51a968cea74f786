// The workbench: wires the page's parts to the state and to the server.

import { call, drop, follow, get, post, postForBlob } from "./api.js";
import { Comparer } from "./comparer.js";
import { Cutter } from "./cutter.js";
import { chosen, formOf, listenForDrops } from "./intake.js";
import { Panels } from "./panels.js";
import { Stage } from "./stage.js";
import { CLOCKWISE, COUNTER, History, isPlaced, moveFragment, placed } from "./state.js";
import { toggleBelonging, togglePin, toTray, turnFragment, wishes } from "./state.js";

const $ = (id) => document.getElementById(id);
const STORED = "jigsync-workbench";

class Workbench {
  constructor(about) {
    this.about = about;
    this.history = new History();
    this.stage = new Stage($("stage"), {
      choose: (id) => this.choose(id),
      dropAt: (id, spot) => this.dropAt(id, spot),
      pickUp: (id) => this.pickUp(id),
    });
    this.panels = new Panels(this);
    this.cutter = new Cutter(about, (puzzle) => this.open(puzzle));
    this.comparer = new Comparer((step, id) => this.decide(step, `${id} is here now, and pinned.`, id));
    this.listen();
    this.panels.busy(""); // nothing can be pressed before somebody listens
    this.restore();
  }

  // ------------------------------------------------------------------------------------------ in

  // Nobody loses an afternoon's work by a slip of the mouse.
  mayReplace() {
    if (!this.puzzle || this.history.steps.length < 2) return true;
    return confirm("Put away what is on the table? A project file keeps it.");
  }

  async take(files) {
    if (!this.mayReplace()) return;
    this.panels.busy("Reading the fragments …");
    try {
      const puzzle = await post("/api/puzzles", formOf(files, this.about.limits));
      this.open(puzzle);
    } catch (error) {
      const single = files.length === 1 && /shows one fragment|plain background/.test(error.message);
      const offer = { text: "Cut it instead", action: () => this.cutter.open(files[0].file) };
      this.panels.fail(error.message, single ? offer : null);
    }
    this.panels.busy("");
  }

  async example() {
    this.panels.busy("Cutting the example …");
    try {
      this.open(await post("/api/cuts", { picture: "astronaut", rows: 4, cols: 6, ...this.about.severities.medium }));
    } catch (error) {
      this.panels.fail(error.message);
    }
    this.panels.busy("");
  }

  open(puzzle, project = puzzle.project) {
    if (this.puzzle && this.puzzle.id !== puzzle.id) drop(`/api/puzzles/${this.puzzle.id}`);
    this.puzzle = puzzle;
    this.job = null;
    this.selected = null;
    this.pitch = puzzle.pitch;
    this.history = project ? new History(project.steps, project.at) : new History();
    $("grid").value = project?.grid ?? "";
    $("upright").checked = project?.upright ?? false;
    this.panels.clear();
    this.panels.opened(puzzle);
    this.stage.open(puzzle);
    this.refreshPitch();
    this.show();
    $("solve").focus();
    this.panels.say(`${puzzle.fragments.length} fragments are on the table.`);
  }

  close() {
    if (!this.mayReplace()) return;
    this.job = null; // letting the puzzle go stops its solve
    if (this.puzzle) drop(`/api/puzzles/${this.puzzle.id}`);
    this.puzzle = null;
    sessionStorage.removeItem(STORED);
    this.panels.closed();
  }

  // ------------------------------------------------------------------------------------------ state

  get step() {
    return this.history.now;
  }

  decide(step, words, id = null) {
    if (step === this.step) {
      this.show();
      return;
    }
    this.history.push(step);
    this.show();
    if (id) this.stage.choosePlaceOf(id);
    this.panels.say(words);
  }

  show() {
    this.stage.carry(null);
    this.stage.show(this.step, this.pitch);
    this.panels.show(this.step);
    this.store();
  }

  // Cells of rectangular fragments are as high and wide as the fragments stand; the server knows.
  async refreshPitch() {
    const { puzzle, step } = this;
    if (!step.solution?.grid) return;
    let shown;
    try {
      shown = await post(`/api/puzzles/${puzzle.id}/turned`, { solution: step.solution, turns: 0 });
    } catch (error) {
      this.panels.fail(error.message);
      return;
    }
    if (this.puzzle !== puzzle || this.step !== step) return;
    if (shown.pitch.join() === this.pitch.join()) return;
    this.pitch = shown.pitch;
    this.stage.show(this.step, this.pitch);
  }

  project() {
    const { steps, at } = this.history;
    return { name: this.puzzle.name, grid: this.gridText() || null, upright: $("upright").checked, steps, at };
  }

  store() {
    try {
      sessionStorage.setItem(STORED, JSON.stringify({ id: this.puzzle.id, project: this.project() }));
    } catch {
      sessionStorage.removeItem(STORED); // too large to survive a reload; a project file still keeps it
    }
  }

  async restore() {
    let kept = null;
    try {
      kept = JSON.parse(sessionStorage.getItem(STORED));
      if (kept) this.open(await get(`/api/puzzles/${kept.id}`), kept.project);
    } catch {
      sessionStorage.removeItem(STORED);
    }
  }

  // ------------------------------------------------------------------------------------------ solve

  gridText() {
    return $("grid").value.trim().toLowerCase().replace(/\s*[x×*,]\s*|\s+/g, "x");
  }

  async solve() {
    const options = wishes(this.step, this.gridText(), $("upright").checked);
    const before = this.step;
    this.panels.clear();
    try {
      const job = await post(`/api/puzzles/${this.puzzle.id}/jobs`, options);
      this.job = job.id;
      this.panels.solving(job);
      this.stage.show(before, this.pitch, true);
      const last = await follow(job.id, (state) => this.progress(state));
      if (this.job !== job.id) return; // another puzzle is on the table by now
      this.ended(last, before);
    } catch (error) {
      this.panels.fail(error.message);
      if (this.puzzle) this.show();
    }
    this.job = null;
    this.panels.solving(null);
  }

  progress(state) {
    if (this.job !== state.id) return;
    this.panels.solving(state);
    if (state.shown) {
      this.pitch = state.shown.pitch;
      this.stage.show({ ...this.step, solution: state.shown.solution }, this.pitch, true);
    }
  }

  ended(job, before) {
    if (job.shown) {
      this.pitch = job.shown.pitch;
      this.history.push({ ...before, solution: job.shown.solution });
    }
    this.show();
    this.panels.ended(job);
  }

  async stop() {
    if (!this.job) return;
    $("cancel").disabled = true;
    try {
      await call("DELETE", `/api/jobs/${this.job}`);
    } catch (error) {
      this.panels.fail(error.message);
    }
  }

  // ------------------------------------------------------------------------------------------ correct

  get free() {
    return this.puzzle && !this.job;
  }

  choose(id) {
    this.selected = id;
    this.panels.selected(this.step, id, this.stage.chosen);
  }

  pickUp(id) {
    if (!this.free || !this.step.solution) return;
    this.stage.carry(id);
    this.panels.say(`${id} is picked up. Choose a cell and press Enter; Escape puts it back.`, true);
  }

  dropAt(id, spot) {
    this.stage.carry(null);
    if (!this.free || !this.step.solution) {
      this.show();
    } else if (spot.row === undefined) {
      const other = spot.tray && spot.tray !== id ? spot.tray : null;
      const at = placed(this.step, id);
      if (other && at.row != null) {
        this.decide(moveFragment(this.step, other, at.row, at.col), `${other} is here now, and pinned.`, other);
      } else this.decide(toTray(this.step, id), `${id} is taken off.`, id);
    } else {
      const words = `${id} is in row ${spot.row + 1}, column ${spot.col + 1} now, and pinned.`;
      this.decide(moveFragment(this.step, id, spot.row, spot.col), words, id);
    }
  }

  turn(turns) {
    const id = this.selected;
    if (!this.free || !id || !isPlaced(this.step, id)) return;
    this.decide(turnFragment(this.step, id, turns), `${id} is turned, and pinned.`, id);
  }

  pin() {
    const id = this.selected;
    if (!this.free || !id || !isPlaced(this.step, id)) return;
    const next = togglePin(this.step, id);
    this.decide(next, next.pinned.includes(id) ? `${id} is pinned.` : `${id} is free again.`, id);
  }

  exclude() {
    const id = this.selected;
    if (!this.free || !id) return;
    const next = toggleBelonging(this.step, id);
    this.decide(next, next.excluded.includes(id) ? `${id} does not belong.` : `${id} belongs after all.`, id);
  }

  async compare() {
    const cell = this.stage.chosen;
    if (!this.free || !this.step.solution || cell?.row === undefined) return;
    try {
      await this.comparer.open(this.puzzle, this.step, this.pitch, cell.row, cell.col);
    } catch (error) {
      this.panels.fail(error.message);
    }
  }

  async flip(turns) {
    if (!this.free || !this.step.solution?.grid || !turns) return;
    try {
      const before = this.step;
      const shown = await post(`/api/puzzles/${this.puzzle.id}/turned`, { solution: before.solution, turns });
      this.pitch = shown.pitch;
      this.decide({ ...before, solution: shown.solution }, "The whole picture is turned.");
    } catch (error) {
      this.panels.fail(error.message);
    }
  }

  async travel(way) {
    if (!this.free) return;
    const before = this.history.at;
    this.history[way]();
    if (this.history.at === before) return;
    this.show();
    this.panels.say(way === "undo" ? "Undone." : "Done again.");
    await this.refreshPitch();
  }

  // ------------------------------------------------------------------------------------------ out

  async keep(what) {
    const { step } = this;
    const base = `/api/puzzles/${this.puzzle.id}`;
    const name = this.puzzle.name.replace(/[^\w.-]+/g, "-").replace(/^[-.]+/, "") || "puzzle";
    const ways = {
      picture: ["picture", { solution: step.solution }, `${name}.png`],
      gaps: ["picture", { solution: step.solution, gaps: true }, `${name}-gaps.png`],
      table: ["table", { step }, `${name}.csv`],
      solution: ["solution", { step }, `${name}-solution.json`],
      project: ["project", this.project(), `${name}.jigsync.zip`],
    };
    const [path, body, file] = ways[what];
    try {
      const url = URL.createObjectURL(await postForBlob(`${base}/${path}`, body));
      const link = document.createElement("a");
      link.href = url;
      link.download = file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      this.panels.say(`${file} is saved.`);
    } catch (error) {
      this.panels.fail(error.message);
    }
  }

  // ------------------------------------------------------------------------------------------ wiring

  listen() {
    const click = (id, action) => $(id).addEventListener("click", action);
    listenForDrops($("drop"), (files) => this.take(files));
    click("choose-files", () => $("files").click());
    click("choose-folder", () => $("folder").click());
    for (const id of ["files", "folder"]) {
      $(id).addEventListener("change", () => {
        const files = chosen($(id));
        $(id).value = "";
        if (files.length) this.take(files);
      });
    }
    click("example", () => this.example());
    click("cut-own", () => this.cutter.open());
    click("start-over", () => this.close());
    click("solve", () => this.solve());
    click("cancel", () => this.stop());
    click("undo", () => this.travel("undo"));
    click("redo", () => this.travel("redo"));
    click("turn", (event) => this.turn(event.shiftKey ? COUNTER : CLOCKWISE));
    click("move", () => this.selected && this.pickUp(this.selected));
    click("pin", () => this.pin());
    click("exclude", () => this.exclude());
    click("compare", () => this.compare());
    for (const button of document.querySelectorAll("[data-keep]")) {
      button.addEventListener("click", () => this.keep(button.dataset.keep));
    }
    document.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (!this.puzzle || document.querySelector("dialog[open]") || event.target.matches("input")) return;
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (letter === "z") this.travel(event.shiftKey ? "redo" : "undo");
      else if (letter === "y") this.travel("redo");
      else return;
      event.preventDefault();
      return;
    }
    if (event.altKey) return;
    const actions = {
      r: () => this.turn(event.shiftKey ? COUNTER : CLOCKWISE),
      p: () => this.pin(),
      x: () => this.exclude(),
      delete: () => this.exclude(),
      c: () => this.compare(),
      m: () => this.selected && this.pickUp(this.selected),
      g: () => this.flip(1),
      escape: () => this.escape(),
    };
    if (actions[letter]) {
      actions[letter]();
      event.preventDefault();
    }
  }

  escape() {
    if (this.stage.carried) {
      this.panels.say(`${this.stage.carried} stays where it was.`);
      this.stage.carry(null);
    } else this.stage.letGo();
  }
}

get("/api/about").then(
  (about) => new Workbench(about),
  (error) => ($("errors").textContent = error.message),
);
