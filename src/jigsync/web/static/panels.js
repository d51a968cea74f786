// Everything around the table: progress, the selected fragment, the four ways up, what was found, messages.

import { postForBlob } from "./api.js";
import { make } from "./stage.js";
import { degrees, fillsAGrid, isPlaced, placed, where } from "./state.js";

const $ = (id) => document.getElementById(id);
const UNSURE = 0.8;
const percent = (p) => `${Math.round(100 * p)}\u00a0%`;

export class Panels {
  constructor(bench) {
    this.bench = bench;
    this.theme();
    $("tint").addEventListener("change", () => $("stage").classList.toggle("plain", !$("tint").checked));
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
    $("verdict").hidden = true;
  }

  busy(words) {
    $("busy").hidden = !words;
    $("busy-text").textContent = words;
    for (const id of ["choose-files", "choose-folder", "example", "cut-own"]) $(id).disabled = Boolean(words);
    if (words) this.clear();
  }

  // ------------------------------------------------------------------------------------------ views

  opened(puzzle) {
    $("start").hidden = true;
    $("bench").hidden = false;
    $("start-over").hidden = false;
    const count = puzzle.fragments.length;
    $("title").textContent = `${puzzle.name} · ${count} fragments`;
    $("advice").hidden = fillsAGrid(count);
    $("advice").textContent =
      `${count} fragments fill no grid of a usual shape. ` +
      "If some are missing, say how many rows and columns there were, for example 4x6.";
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
    const solved = Boolean(step.solution?.grid);
    $("solve").textContent = solved ? "Solve again" : "Put it together";
    $("undo").disabled = !bench.history.canUndo;
    $("redo").disabled = !bench.history.canRedo;
    $("grid").placeholder = solved ? step.solution.grid.join(" × ") : "any";
    for (const id of ["gauge", "sure", "keep"]) $(id).hidden = !solved;
    this.selected(step, bench.selected, bench.stage.chosen);
    if (solved) {
      this.sure(step);
      this.gauge(step);
    }
  }

  selected(step, id, cell) {
    const solved = Boolean(step.solution?.grid);
    const onBoard = id && isPlaced(step, id);
    $("one").classList.toggle("lively", Boolean(id));
    $("one-title").textContent = id ?? "Fragment";
    $("one-text").textContent = this.about(step, id, cell);
    $("turn").disabled = !onBoard;
    $("pin").disabled = !onBoard;
    $("move").disabled = !id || !solved;
    $("compare").disabled = !solved || cell?.row === undefined;
    $("exclude").disabled = !id;
    const pinned = id && step.pinned.includes(id);
    const out = id && step.excluded.includes(id);
    $("pin").setAttribute("aria-pressed", String(Boolean(pinned)));
    $("pin").querySelector("span").textContent = pinned ? "Unpin" : "Pin";
    $("exclude").setAttribute("aria-pressed", String(Boolean(out)));
    $("exclude").querySelector("span").textContent = out ? "Belongs after all" : "Not belonging";
  }

  about(step, id, cell) {
    if (!id) return cell?.row === undefined ? "Select a fragment to turn, move or pin it." : "This cell is empty.";
    const p = placed(step, id);
    const words = [where(step, id)];
    if (p?.row != null && p.turns) words.push(`turned ${(360 - 90 * p.turns) % 360}° clockwise`);
    if (p?.row != null) words.push(p.confidence == null ? "placed by you" : `${percent(p.confidence)} sure`);
    if (step.pinned.includes(id)) words.push("pinned: solving again keeps it");
    const { skew } = this.bench.puzzle.fragments.find((f) => f.id === id);
    if (skew != null) words.push(`lay ${Math.abs(skew).toFixed(1)}° askew in the scan`);
    const text = words.join(", ");
    return `${text[0].toUpperCase()}${text.slice(1)}.`;
  }

  sure(step) {
    const all = Object.values(step.solution.fragments).filter((p) => p.row != null && p.confidence != null);
    const unsure = all.filter((p) => p.confidence < UNSURE).length;
    $("sure").hidden = !all.length;
    $("sure-text").textContent = unsure
      ? `${unsure} of ${all.length} fragments are less than ${percent(UNSURE)} sure. Pin what you know and solve again.`
      : `The solver is at least ${percent(UNSURE)} sure of every fragment it placed.`;
  }

  // ------------------------------------------------------------------------------------------ which side is up

  gauge(step) {
    const p = step.solution.gauge.probabilities ?? [0.25, 0.25, 0.25, 0.25];
    const even = Math.max(...p) - Math.min(...p.filter((v) => v > 0)) < 1e-6 && p.filter((v) => v > 0).length > 1;
    let words = "How likely each way up is; the first is as shown.";
    if (step.pinned.length && p[0] === 1) words = "Your pins decide it. Turn it all the same if you like.";
    else if (even) words = "Undetermined: nothing measured tells. Choose what looks right.";
    else if (step.solution.gauge.clear === false) words = "This picture has no clear up. Choose what looks right.";
    $("gauge-text").textContent = words;
    const { grid, fragments } = step.solution;
    const key = JSON.stringify([grid, Object.values(fragments).map((f) => [f.row, f.col, f.turns])]);
    if (key !== this.drawn) {
      this.drawn = key;
      clearTimeout(this.later);
      this.later = setTimeout(() => this.thumbnail(step, key), 350);
    }
    $("gauge-choices").replaceChildren(...p.map((share, turns) => this.way(share, turns)));
  }

  way(share, turns) {
    const button = make("button", "");
    button.type = "button";
    button.setAttribute("aria-pressed", String(turns === 0));
    const words = turns ? `turned ${(360 - 90 * turns) % 360}° clockwise` : "as shown";
    button.setAttribute("aria-label", `${words}, probability ${percent(share)}`);
    const thumb = button.appendChild(make("span", "thumb"));
    const image = thumb.appendChild(make("img", ""));
    image.alt = "";
    image.style.transform = `rotate(${degrees(turns)}deg)`;
    if (this.thumb) image.src = this.thumb;
    button.append(percent(share));
    const bar = button.appendChild(make("span", "p"));
    bar.style.width = `${100 * share}%`;
    button.addEventListener("click", () => this.bench.flip(turns));
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

  ended(job) {
    const verdict = $("verdict");
    verdict.hidden = false;
    verdict.classList.toggle("bad", job.state === "failed");
    const took = job.seconds < 0.1 ? "a moment" : `${job.seconds.toFixed(1)} s`;
    const { grid, fragments } = job.shown?.solution ?? {};
    if (job.state === "failed") verdict.textContent = `It could not be solved: ${job.reason}`;
    else if (job.state === "cancelled") verdict.textContent = job.reason;
    else {
      const count = Object.values(fragments).filter((p) => p.row != null).length;
      const done = `${count} fragments in a ${grid[0]} × ${grid[1]} grid, after ${took}.`;
      verdict.textContent = `${done} ${job.reason}`.trim();
    }
    this.say(verdict.textContent);
  }
}
