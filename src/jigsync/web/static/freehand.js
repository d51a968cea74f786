// What a person does on the free canvas, decided: from a gesture or key to the next step.

import { post } from "./api.js";
import * as places from "./places.js";
import { middleOf, turnedAbout } from "./poses.js";
import { Table } from "./table.js";
import { percent } from "./words.js";

const $ = (id) => document.getElementById(id);
const MOST = 6; // proposed places
const QUICK = 300; // fragments up to which places are asked for while one is dragged

export class FreeHand {
  constructor(bench) {
    this.bench = bench;
    this.table = new Table($("table"), {
      select: (ids) => this.selected(ids),
      place: (poses, words, tag) => this.place(poses, words, tag),
      snap: (ghost) => this.snap(ghost),
      say: (words) => bench.panels.say(words),
      warmUp: (id) => this.warmUp(id),
    });
    this.listen();
  }

  get step() {
    return this.bench.step;
  }

  get ids() {
    return this.bench.puzzle.fragments.map((f) => f.id);
  }

  get chosen() {
    return this.table.chosen;
  }

  selected(ids) {
    if (!this.table.ghosts.some((ghost) => ids.length === 1 && ghost.id === ids[0])) this.show([]);
    this.bench.panels.selected(this.step);
  }

  decide(step, words, tag = "") {
    if (!this.bench.free) return;
    this.show([]);
    this.bench.decide(step, words, null, tag);
  }

  // ------------------------------------------------------------------------------------------ moves

  place(poses, how, tag = "") {
    const ids = Object.keys(poses);
    const what = ids.length === 1 ? ids[0] : `${ids.length} fragments`;
    this.decide(places.place(this.step, poses, this.ids), `${what} ${how}.`, tag);
  }

  // The numbers that a person wrote; of several fragments they are those of the middle.
  write(x, y, clockwise) {
    const now = this.chosen.map((id) => this.table.pose(id));
    if (!now.length || ![x, y, clockwise].every(Number.isFinite) || !this.table.gestures.movable()) return;
    const middle = middleOf(now);
    const turn = now.length === 1 ? -clockwise - now[0].angle : -clockwise;
    const poses = now.map((pose) => turnedAbout(pose, middle, turn));
    const put = poses.map((pose) => ({ ...pose, x: pose.x + x - middle[0], y: pose.y + y - middle[1] }));
    this.place(Object.fromEntries(this.chosen.map((id, k) => [id, put[k]])), "placed by its numbers");
  }

  lock() {
    if (!this.chosen.length) return;
    const next = places.toggleLock(this.step, this.chosen);
    const locked = next.pinned.includes(this.chosen[0]);
    this.decide(next, locked ? "Locked: solving again keeps it there." : "Not locked any more.");
  }

  exclude() {
    if (!this.chosen.length) return;
    const next = places.toggleExcluded(this.step, this.chosen, this.ids);
    this.decide(next, next.excluded.includes(this.chosen[0]) ? "It does not belong." : "It belongs after all.");
  }

  layAside() {
    const on = this.chosen.filter((id) => places.poseOf(this.step, id));
    if (!on.length) return;
    this.decide(places.layAside(this.step, on, this.ids), "Laid aside.");
    this.table.keys.bringIn(on[0]);
  }

  // Several groups become one; fragments of one group become as many.
  group() {
    const on = this.chosen.filter((id) => places.poseOf(this.step, id));
    if (!on.length) return;
    const whole = this.isOneGroup(on);
    if (whole) this.decide(places.ungroup(this.step, on), "Each is a group of its own now.");
    else this.decide(places.group(this.step, places.groupOf(this.step, on)), "They are one group now.");
  }

  isOneGroup(ids) {
    const groups = new Set(ids.map((id) => this.step.solution?.fragments[id].component ?? 0));
    return ids.length > 1 && groups.size === 1;
  }

  turnWhole(clockwise) {
    this.decide(places.turnWhole(this.step, -clockwise, this.ids), "The whole picture is turned.");
    this.table.fit();
  }

  // ------------------------------------------------------------------------------------------ where it fits

  async fits(id = this.chosen[0], quiet = false) {
    const { bench } = this;
    if (!id || !bench.free) return;
    const { step, puzzle } = bench;
    if (!Object.keys(step.solution?.fragments ?? {}).some((other) => other !== id && places.poseOf(step, other))) {
      if (!quiet) bench.panels.say("Nothing is on the table that it could fit to.", true);
      return;
    }
    if (!quiet) bench.panels.say(`Looking for places of ${id} …`, true);
    let found = [];
    try {
      const body = { solution: step.solution, fragment: id, limit: MOST };
      found = await post(`/api/puzzles/${puzzle.id}/fits`, body);
    } catch (error) {
      if (!quiet) bench.panels.fail(error.message);
      return;
    }
    if (bench.puzzle !== puzzle || this.step !== step || this.chosen[0] !== id) return;
    this.show(found.map((fit) => ({ ...fit, id })));
    if (quiet) return;
    const words = found.length
      ? `${id} may fit in ${found.length} ${found.length === 1 ? "place" : "places"}: take one with its number, or drag it near.`
      : `Nothing measured says where ${id} fits.`;
    bench.panels.say(words, true);
  }

  // While a fragment is dragged its places are looked up, so that it can snap to them.
  warmUp(id) {
    if (places.isSolved(this.step) && this.ids.length <= QUICK && !this.table.ghosts.length) this.fits(id, true);
  }

  show(ghosts) {
    this.table.setGhosts(ghosts);
    $("fit-list").hidden = !ghosts.length;
    $("fit-list").replaceChildren(
      ...ghosts.map((ghost, k) => {
        const item = document.createElement("li");
        const button = item.appendChild(document.createElement("button"));
        button.type = "button";
        const likely = percent(1 / (1 + Math.exp(-ghost.log_odds)));
        button.textContent = `${k + 1}. beside ${ghost.beside.slice(0, 3).join(", ")}`;
        button.appendChild(document.createElement("small")).textContent = likely;
        button.addEventListener("click", () => this.snap(ghost));
        return item;
      }),
    );
  }

  snap(ghost) {
    const { id, beside } = ghost;
    this.decide(places.fitted(this.step, id, ghost, this.ids), `${id} lies beside ${beside.join(", ")} now.`);
  }

  // ------------------------------------------------------------------------------------------ wiring

  listen() {
    const click = (id, action) => $(id).addEventListener("click", action);
    click("fits", () => this.fits());
    click("lock", () => this.lock());
    click("turn-left", () => this.table.keys.turn(15));
    click("turn-right", () => this.table.keys.turn(-15));
    click("whole-group", () => this.table.keys.chooseGroup());
    click("group", () => this.group());
    click("lay-aside", () => this.layAside());
    click("free-exclude", () => this.exclude());
    click("zoom-in", () => this.table.zoom(1.25));
    click("zoom-out", () => this.table.zoom(0.8));
    click("fit", () => this.table.fit());
    $("pose").addEventListener("submit", (event) => event.preventDefault());
    $("pose").addEventListener("change", () => {
      this.write(...["pose-x", "pose-y", "pose-angle"].map((id) => $(id).valueAsNumber));
    });
  }

  // A letter of the keyboard; true when it means something here.
  key(letter) {
    const actions = {
      f: () => this.fits(),
      p: () => this.lock(),
      x: () => this.exclude(),
      j: () => this.group(),
      l: () => this.layAside(),
      delete: () => this.layAside(),
      backspace: () => this.layAside(),
    };
    const ghost = this.table.ghosts[Number(letter) - 1];
    if (ghost) this.snap(ghost);
    else if (actions[letter]) actions[letter]();
    else return false;
    return true;
  }

  escape() {
    if (this.table.gestures.letGo()) this.bench.panels.say("Put back.");
    else if (this.table.ghosts.length) this.show([]);
    else this.table.choose([]);
  }
}
