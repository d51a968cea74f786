// The workbench: wires the page's parts to the state and to the server.

import { call, follow, get, post } from "./api.js";
import { Comparer } from "./comparer.js";
import { Cutter } from "./cutter.js";
import { FreeHand } from "./freehand.js";
import { chosen, formOf, listenForDrops } from "./intake.js";
import { keep } from "./keep.js";
import { Panels } from "./panels.js";
import { freed, lockedPlaces, showsGrid } from "./places.js";
import { Review } from "./review.js";
import { Session } from "./session.js";
import { Stage } from "./stage.js";
import { CLOCKWISE, COUNTER, History, cellWishes, isPlaced, moveFragment, placed } from "./state.js";
import { toggleBelonging, togglePin, toTray, turnFragment } from "./state.js";

const $ = (id) => document.getElementById(id);
const GRID = /^[1-9]\d{0,3}(x[1-9]\d{0,3})?$/;
const PICTURE = /\.(png|jpe?g|webp|tiff?|bmp|gif)$/i;
const FINISHED = ["done", "failed", "cancelled"];

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
    this.hand = new FreeHand(this);
    this.session = new Session((theirs) => this.torn(theirs));
    this.cutter = new Cutter(about, (puzzle) => this.open(puzzle));
    this.review = new Review(this, (puzzle) => this.open(puzzle));
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

  // One picture shows many fragments, and so do pictures that are said to be photographs; others are fragments.
  async take(files, photographs = files.length === 1 && PICTURE.test(files[0].name)) {
    if (!this.mayReplace()) return;
    this.panels.busy(photographs ? "Looking for fragments …" : "Reading the fragments …");
    try {
      if (photographs) await this.examine(files);
      else this.open(await post("/api/puzzles", formOf(files, this.about.limits)));
    } catch (error) {
      const offer = { text: "Cut it instead", action: () => this.cutter.open(files[0].file) };
      this.panels.fail(error.message, photographs && files.length === 1 ? offer : null);
    }
    this.panels.busy("");
  }

  async examine(files) {
    await this.review.take(files);
    if (this.puzzle) this.putAway();
    $("bench").hidden = true;
    this.panels.say($("review-notes").textContent);
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

  open(puzzle, project = puzzle.project, version = puzzle.version) {
    if (this.puzzle && this.puzzle.id !== puzzle.id) this.session.end();
    this.puzzle = puzzle;
    this.job = null;
    this.selected = null;
    this.pitch = puzzle.pitch;
    this.history = project ? new History(project.steps, project.at) : new History();
    this.session.begin(puzzle, version);
    $("grid").value = project?.grid ?? "";
    $("layout").value = project?.layout ?? "auto";
    $("upright").checked = project?.upright ?? false;
    this.review.close();
    this.panels.clear();
    this.panels.opened(puzzle);
    this.stage.open(puzzle);
    this.hand.table.open(puzzle);
    this.refreshPitch();
    this.show();
    $("solve").focus();
    this.panels.say(`${puzzle.fragments.length} fragments are on the table.`);
  }

  close() {
    if (!this.mayReplace()) return;
    this.putAway();
    this.review.close();
    this.panels.closed();
  }

  putAway() {
    this.job = null; // letting the puzzle go stops its solve
    this.session.end();
    this.puzzle = null;
    this.hand.table.close();
  }

  // ------------------------------------------------------------------------------------------ state

  get step() {
    return this.history.now;
  }

  decide(step, words, id = null, tag = "") {
    if (step === this.step) {
      this.show();
      return;
    }
    this.history.push(step, tag);
    this.panels.attempt(null);
    this.show();
    if (id) this.stage.choosePlaceOf(id);
    this.panels.say(words);
  }

  get inGrid() {
    return showsGrid(this.step);
  }

  show() {
    this.view(this.step, Boolean(this.job));
    this.panels.show(this.step);
    this.session.keep(() => this.project());
  }

  // The grid where there is one, the free canvas everywhere else.
  view(step, live) {
    const grid = showsGrid(step);
    $("stage").hidden = !grid;
    $("table").hidden = grid;
    this.stage.carry(null);
    if (grid) {
      this.hand.table.hide();
      this.stage.show(step, this.pitch, live);
    } else this.hand.table.show(step, live);
  }

  // Cells of rectangular fragments are as high and wide as the fragments stand; the server knows.
  async refreshPitch() {
    const { puzzle, step } = this;
    if (!showsGrid(step)) return;
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
    this.view(this.step, Boolean(this.job));
  }

  project() {
    const { steps, at } = this.history;
    const [layout, upright] = [$("layout").value, $("upright").checked];
    return { name: this.puzzle.name, grid: this.gridText() || null, layout, upright, steps, at };
  }

  async restore() {
    const kept = await this.session.restored();
    if (!kept || this.puzzle) return;
    this.open(kept.puzzle, kept.project, kept.version);
    if (kept.synced) this.session.sent = this.step;
    if (kept.theirs) this.torn(kept.theirs);
    if (kept.job) this.rejoin(kept.job);
  }

  // Two windows have gone different ways: the person says which one counts.
  torn(theirs) {
    this.session.torn = true;
    this.panels.conflict(
      () => {
        this.history.push(theirs.step);
        this.session.settle(theirs.version);
        this.session.sent = theirs.step;
        this.show();
        this.refreshPitch();
      },
      () => this.session.settle(theirs.version),
    );
  }

  // ------------------------------------------------------------------------------------------ solve

  gridText() {
    return $("grid").value.trim().toLowerCase().replace(/\s*[x×*,]\s*|\s+/g, "x");
  }

  // What the solver gets of a person's decisions.
  wishes() {
    const { step } = this;
    const asked = this.gridText();
    const wanted = { layout: $("layout").value, upright: $("upright").checked, exclude: step.excluded };
    if (this.inGrid && wanted.layout !== "free") {
      const { pins, grid } = cellWishes(step);
      return { ...wanted, grid: asked || grid, pins };
    }
    return { ...wanted, grid: asked || null, places: lockedPlaces(step) };
  }

  async solve() {
    this.panels.clear();
    const grid = this.gridText();
    if (grid && !GRID.test(grid)) {
      this.panels.fail(`A grid is rows x columns, for example 4x6, or empty for any. '${$("grid").value}' is not one.`);
      $("grid").focus();
      return;
    }
    try {
      await this.watch(await post(`/api/puzzles/${this.puzzle.id}/jobs`, this.wishes()));
    } catch (error) {
      this.panels.fail(error.message);
      this.solved();
    }
  }

  // A solve that a reload has interrupted.
  async rejoin(id) {
    try {
      const job = await get(`/api/jobs/${id}`);
      if (FINISHED.includes(job.state)) this.ended(job, this.step);
      else await this.watch(job);
    } catch {
      this.solved(); // it is known no longer, and what was shown is still there
    }
  }

  async watch(job) {
    const before = this.step;
    this.job = this.session.job = job.id;
    this.session.write();
    this.hand.show([]);
    this.panels.solving(job);
    this.view(before, true);
    const last = await follow(job.id, (state) => this.progress(state));
    if (this.job !== job.id) return; // another puzzle is on the table by now
    this.ended(last, before);
  }

  progress(state) {
    if (this.job !== state.id) return;
    this.panels.solving(state);
    if (state.shown) {
      this.pitch = state.shown.pitch;
      this.view({ ...this.step, solution: state.shown.solution }, true);
    }
  }

  ended(job, before) {
    if (job.shown) {
      this.pitch = job.shown.pitch;
      this.history.push({ ...before, solution: job.shown.solution });
    }
    this.panels.attempt(job);
    this.solved();
    if (job.shown && !this.inGrid) this.hand.table.fit();
    this.panels.say($("verdict").textContent);
  }

  solved() {
    this.job = this.session.job = null;
    this.panels.solving(null);
    if (!this.puzzle) return;
    this.show();
    if (document.activeElement === document.body || !document.activeElement) $("solve").focus();
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
    this.panels.selected(this.step);
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

  // By quarter turns in a grid, by any angle on the free canvas.
  async flip(degrees) {
    if (!this.free || !this.step.solution || !degrees) return;
    if (!this.inGrid) {
      this.hand.turnWhole(-degrees);
      return;
    }
    const turns = Math.round(degrees / 90 + 4) % 4;
    try {
      const before = this.step;
      const shown = await post(`/api/puzzles/${this.puzzle.id}/turned`, { solution: before.solution, turns });
      this.pitch = shown.pitch;
      this.decide({ ...before, solution: shown.solution }, "The whole picture is turned.");
    } catch (error) {
      this.panels.fail(error.message);
    }
  }

  // Out of the grid: every fragment stays where it is, and may go anywhere.
  lift() {
    if (!this.free || !this.inGrid) return;
    this.decide(freed(this.step, this.puzzle.fragments.map((f) => f.id)), "The fragments are on the free canvas now.");
    this.hand.table.fit();
  }

  async travel(way) {
    if (!this.free) return;
    const before = this.history.at;
    this.history[way]();
    if (this.history.at === before) return;
    this.panels.attempt(null);
    this.hand.show([]);
    this.show();
    this.panels.say(way === "undo" ? "Undone." : "Done again.");
    await this.refreshPitch();
  }

  // ------------------------------------------------------------------------------------------ out

  async keep(what) {
    try {
      const name = await keep(what, this.puzzle, this.step, this.project());
      this.panels.say(`${name} is saved.`);
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
    click("choose-photographs", () => $("photographs").click());
    for (const id of ["files", "folder", "photographs"]) {
      $(id).addEventListener("change", () => {
        const files = chosen($(id));
        $(id).value = "";
        if (files.length) this.take(files, id === "photographs" || undefined);
      });
    }
    click("example", () => this.example());
    click("cut-own", () => this.cutter.open());
    click("start-over", () => this.close());
    click("solve", () => this.solve());
    click("cancel", () => this.stop());
    click("free-canvas", () => this.lift());
    $("whole").addEventListener("submit", (event) => {
      event.preventDefault();
      this.flip(-$("whole-angle").valueAsNumber);
    });
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
    if (this.review.active && !document.querySelector("dialog[open]") && !event.target.matches("input")) {
      if (!event.altKey && this.review.key(event.key.toLowerCase(), event)) event.preventDefault();
      return;
    }
    if (!this.puzzle || document.querySelector("dialog[open]") || event.target.matches("input, select")) return;
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      if (letter === "z") this.travel(event.shiftKey ? "redo" : "undo");
      else if (letter === "y") this.travel("redo");
      else return;
      event.preventDefault();
      return;
    }
    if (event.altKey) return;
    if (!this.inGrid && letter !== "escape" && letter !== "g") {
      if (this.hand.key(letter)) event.preventDefault();
      return;
    }
    const actions = {
      r: () => this.turn(event.shiftKey ? COUNTER : CLOCKWISE),
      p: () => this.pin(),
      x: () => this.exclude(),
      delete: () => this.exclude(),
      c: () => this.compare(),
      m: () => this.selected && this.pickUp(this.selected),
      g: () => this.flip(90),
      escape: () => this.escape(),
    };
    if (actions[letter]) {
      actions[letter]();
      event.preventDefault();
    }
  }

  escape() {
    if (!this.inGrid) {
      this.hand.escape();
      return;
    }
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
