// Everything around the table: progress, the selected fragment, the four ways up, what was found, messages.

import { postForBlob } from "./api.js";
import { make } from "./stage.js";
import { isSolved, poseOf, showsGrid } from "./places.js";
import { wrap } from "./poses.js";
import { fillsAGrid, isPlaced } from "./state.js";
import { aboutSelected, percent, sureness, verdictOf } from "./words.js";

const $ = (id) => document.getElementById(id);
const WAYS = 8; // ways up that are shown
const UNLIKELY = 0.02; // less likely ones are left out where there are many

export class Panels {
  constructor(bench) {
    this.bench = bench;
    this.theme();
    $("tint").addEventListener("change", () => {
      $("stage").classList.toggle("plain", !$("tint").checked);
      bench.hand.table.tinted = $("tint").checked;
      bench.hand.table.repaint();
    });
  }

  theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const set = () => {
      const wanted = localStorage.getItem("jigsync-theme") ?? (dark.matches ? "dark" : "light");
      document.documentElement.dataset.theme = wanted;
    };
    dark.addEventListener("change", set);
    $("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme;
      localStorage.setItem("jigsync-theme", now === "dark" ? "light" : "dark");
      set();
      this.bench.hand.table.bitmaps?.forgetShapes();
      this.bench.hand.table.repaint();
    });
    set();
  }

  // ------------------------------------------------------------------------------------------ messages

  say(words, visible = false) {
    $("spoken").textContent = words;
    if (visible) $("one-text").textContent = words;
  }

  fail(words, offer = null) {
    const line = $("errors").appendChild(make("div", "error"));
    line.appendChild(make("span", "")).textContent = words;
    const button = (text, action) => {
      const made = line.appendChild(make("button", ""));
      made.type = "button";
      made.textContent = text;
      made.addEventListener("click", () => {
        line.remove();
        action();
      });
    };
    if (offer) button(offer.text, offer.action);
    button("Dismiss", () => {});
  }

  clear() {
    $("errors").replaceChildren();
    this.attempt(null);
  }

  // Another window has changed the same puzzle.
  conflict(theirs, ours) {
    this.fail("Another window has changed this puzzle. Nothing is lost: choose what counts.", {
      text: "Show what it has",
      action: theirs,
    });
    const last = $("errors").lastChild.querySelector("button:last-child");
    last.textContent = "Keep what is here";
    last.addEventListener("click", ours);
  }

  busy(words) {
    $("busy").hidden = !words;
    $("busy-text").textContent = words;
    const doors = ["choose-files", "choose-folder", "choose-photographs", "example", "cut-own"];
    for (const id of doors) $(id).disabled = Boolean(words);
    if (words) this.clear();
  }

  // ------------------------------------------------------------------------------------------ views

  opened(puzzle) {
    $("start").hidden = true;
    $("bench").hidden = false;
    $("start-over").hidden = false;
    const count = puzzle.fragments.length;
    $("title").textContent = `${puzzle.name} · ${count} fragments`;
    $("notes").hidden = !puzzle.notes.length;
    $("notes-list").replaceChildren(
      ...puzzle.notes.map((note) => {
        const item = make("li", "");
        item.textContent = note;
        return item;
      }),
    );
    this.solving(null);
  }

  closed() {
    this.clear();
    $("start").hidden = false;
    $("bench").hidden = true;
    $("start-over").hidden = true;
    $("title").textContent = "";
    $("choose-files").focus();
  }

  show(step) {
    const { bench } = this;
    const grid = showsGrid(step);
    const solved = Boolean(step.solution && (grid || Object.values(step.solution.fragments).some((p) => p.x != null)));
    $("solve").textContent = isSolved(step) ? "Solve again" : "Put it together";
    $("undo").disabled = !bench.history.canUndo;
    $("redo").disabled = !bench.history.canRedo;
    $("free-canvas").hidden = !grid;
    $("grid").placeholder = grid ? step.solution.grid.join(" × ") : "any";
    for (const id of ["gauge", "keep"]) $(id).hidden = !solved;
    $("whole").hidden = grid;
    const sure = solved ? sureness(step) : "";
    $("sure").hidden = !sure;
    $("sure-text").textContent = sure;
    const count = Object.keys(step.solution?.fragments ?? bench.puzzle.fragments).length - step.excluded.length;
    $("advice").hidden = !grid || fillsAGrid(count);
    $("advice").textContent =
      `${count} fragments fill no grid of a usual shape. ` +
      "If some are missing, say how many rows and columns there were, for example 4x6.";
    this.selected(step);
    this.verdict(step);
    if (solved) this.gauge(step);
  }

  // What the last solve came to when it left nothing to show, until something else happens.
  attempt(job) {
    this.tried = job;
    $("verdict").dataset.job = job?.id ?? "";
    if (this.bench.puzzle) this.verdict(this.bench.step);
  }

  verdict(step) {
    const { tried } = this;
    let said = verdictOf(step);
    if (tried?.state === "failed") said = { status: "failed", head: "It could not be solved:", text: tried.reason };
    else if (tried?.state === "cancelled") said = { ...said, head: tried.reason, text: said?.text ?? "" };
    $("verdict").hidden = !said;
    $("verdict").classList.toggle("bad", ["failed", "unsure", "partial"].includes(said?.status));
    $("verdict-head").textContent = said?.head ?? "";
    $("verdict-text").textContent = said?.text ?? "";
  }

  selected(step) {
    const { bench } = this;
    const grid = showsGrid(step);
    const ids = grid ? (bench.selected ? [bench.selected] : []) : bench.hand.chosen;
    const cell = grid ? bench.stage.chosen : null;
    $("one").classList.toggle("lively", ids.length > 0);
    $("one-title").textContent = ids.length === 1 ? ids[0] : ids.length ? "Fragments" : "Fragment";
    $("one-text").textContent = aboutSelected(step, ids, bench.puzzle.fragments, grid, cell);
    $("one-actions").hidden = !grid;
    $("free-actions").hidden = grid;
    if (grid) this.selectedInGrid(step, ids[0] ?? null, cell);
    else this.selectedOnTable(step, ids);
  }

  selectedInGrid(step, id, cell) {
    $("pose").hidden = true;
    const onBoard = id && isPlaced(step, id);
    $("turn").disabled = !onBoard;
    $("pin").disabled = !onBoard;
    $("move").disabled = !id;
    $("compare").disabled = cell?.row === undefined;
    $("exclude").disabled = !id;
    press("pin", id && step.pinned.includes(id), "Unpin", "Pin");
    press("exclude", id && step.excluded.includes(id), "Belongs after all", "Does not belong");
  }

  selectedOnTable(step, ids) {
    const { hand } = this.bench;
    const on = ids.filter((id) => poseOf(step, id));
    $("fits").disabled = ids.length !== 1;
    for (const id of ["lock", "whole-group", "lay-aside"]) $(id).disabled = !on.length;
    for (const id of ["turn-left", "turn-right", "free-exclude"]) $(id).disabled = !ids.length;
    $("group").disabled = on.length < 2;
    press("lock", on.length && on.every((id) => step.pinned.includes(id)), "Unlock", "Lock");
    press("free-exclude", ids.length && ids.every((id) => step.excluded.includes(id)), "Belongs after all", "Does not belong");
    $("group").querySelector("span").textContent = hand.isOneGroup(on) ? "Ungroup" : "Group";
    $("pose").hidden = ids.length !== 1;
    if (ids.length !== 1) return;
    const pose = hand.table.pose(ids[0]);
    const numbers = { "pose-x": pose.x, "pose-y": pose.y, "pose-angle": wrap(-pose.angle) };
    for (const [field, value] of Object.entries(numbers)) $(field).value = String(Math.round(10 * value) / 10);
  }

  // ------------------------------------------------------------------------------------------ which side is up

  gauge(step) {
    const { angles, probabilities } = step.solution.gauge;
    const ways = angles.map((angle, k) => ({ angle, p: probabilities[k] }));
    const told = ways.filter((way) => way.p > 0);
    const even = told.length > 1 && Math.max(...told.map((w) => w.p)) - Math.min(...told.map((w) => w.p)) < 1e-6;
    let words = "How likely each way up is; the first is as shown.";
    if (step.pinned.length && ways[0].p === 1) words = "Your pins decide it. Turn it all the same if you like.";
    else if (told.length < 2) words = "As shown. Turn it if another way looks right.";
    else if (even) words = "Undetermined: nothing measured tells. Choose what looks right.";
    else if (step.solution.gauge.clear === false) words = "This picture has no clear up. Choose what looks right.";
    $("gauge-text").textContent = words;
    const key = JSON.stringify(Object.values(step.solution.fragments).map((f) => [f.row, f.col, f.turns, f.angle, f.x, f.y]));
    if (key !== this.drawn) {
      this.drawn = key;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.thumbnail(step, key), 350);
    }
    const [first, ...rest] = ways;
    const likely = rest.filter((way) => ways.length <= 4 || way.p >= UNLIKELY).sort((a, b) => ways.length > 4 && b.p - a.p);
    $("gauge-choices").replaceChildren(...[first, ...likely].slice(0, WAYS).map((way) => this.way(way)));
  }

  way({ angle, p }) {
    const button = make("button", "");
    button.type = "button";
    button.setAttribute("aria-pressed", String(angle === 0));
    const words = angle ? `turned ${Math.round((360 - angle) % 360)}° clockwise` : "as shown";
    button.setAttribute("aria-label", `${words}, probability ${percent(p)}`);
    const thumb = button.appendChild(make("span", "thumb"));
    const image = thumb.appendChild(make("img", ""));
    image.alt = "";
    image.style.transform = `rotate(${-angle}deg)`;
    if (this.thumb) image.src = this.thumb;
    button.append(percent(p));
    const bar = button.appendChild(make("span", "p"));
    bar.style.width = `${100 * p}%`;
    button.addEventListener("click", () => this.bench.flip(angle));
    return button;
  }

  async thumbnail(step, key) {
    try {
      const body = { solution: step.solution, longest: 120 };
      const blob = await postForBlob(`/api/puzzles/${this.bench.puzzle.id}/picture`, body);
      if (key !== this.drawn) return;
      if (this.thumb) URL.revokeObjectURL(this.thumb);
      this.thumb = URL.createObjectURL(blob);
      for (const image of $("gauge-choices").querySelectorAll("img")) image.src = this.thumb;
    } catch {
      // The buttons work without a picture.
    }
  }

  // ------------------------------------------------------------------------------------------ progress

  solving(job) {
    const on = Boolean(job);
    clearInterval(this.clock);
    $("progress").hidden = !on;
    $("cancel").hidden = !on;
    $("solve").hidden = on;
    if (!on) {
      $("cancel").disabled = false;
      return;
    }
    const bar = $("progress-bar");
    if (job.fraction > 0) bar.value = job.fraction;
    else bar.removeAttribute("value");
    $("progress-stage").textContent = job.state === "waiting" ? "waiting for other puzzles" : this.stageName(job.stage);
    const energy = job.energy == null ? "" : `energy ${job.energy.toFixed(1).replace("-", "−")} · `;
    const begun = performance.now() / 1000 - job.seconds;
    const tick = () => {
      $("progress-energy").textContent = `${energy}${(performance.now() / 1000 - begun).toFixed(1)} s`;
    };
    tick();
    this.clock = setInterval(tick, 200); // some stages have nothing to report for a while
  }

  stageName(stage) {
    const grid = /^solving (\d+)x(\d+)$/.exec(stage);
    if (grid) return `trying ${grid[1]} × ${grid[2]}`;
    return stage === "measuring" ? "measuring how the fragments fit" : stage || "starting";
  }
}

function press(id, on, undo, words) {
  $(id).setAttribute("aria-pressed", String(Boolean(on)));
  $(id).querySelector("span").textContent = on ? undo : words;
}
