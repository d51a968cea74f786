// What survives a reload, and what windows of one puzzle know of each other.
//
// The history lives in this tab's session storage. The state that is shown is also kept by the server under a version:
// a window that builds on an old one is told so and nothing is overwritten.

import { call, drop, get } from "./api.js";

const STORED = "jigsync-workbench";
const LATER = 500; // ms after the last change
const MOST = 30_000; // fragments times steps that are kept for a reload

export class Session {
  constructor(conflict) {
    this.conflict = conflict; // told when another window was faster
    this.window = Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(36)).join("");
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => event.persisted && this.puzzle && this.opened(this.puzzle.id));
  }

  async opened(id) {
    return get(`/api/puzzles/${id}?window=${this.window}`);
  }

  begin(puzzle, version = puzzle.version) {
    Object.assign(this, { puzzle, version, sent: null, job: null, torn: false });
    this.opened(puzzle.id).catch(() => {}); // so that the server knows this window; a puzzle that is gone shows when used
  }

  end() {
    if (this.puzzle) drop(`/api/puzzles/${this.puzzle.id}?window=${this.window}`);
    this.puzzle = null;
    clearTimeout(this.timer);
    sessionStorage.removeItem(STORED);
  }

  leave() {
    if (!this.puzzle) return;
    this.write();
    drop(`/api/puzzles/${this.puzzle.id}/windows/${this.window}`);
  }

  // Keeps what is there now, in a moment.
  keep(project) {
    this.project = project;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.write();
      this.share();
    }, LATER);
  }

  write() {
    if (!this.puzzle || !this.project) return;
    const { steps, at, ...rest } = this.project();
    const many = Math.max(1, Math.floor(MOST / this.puzzle.fragments.length));
    const first = Math.max(0, Math.min(at - Math.floor(many / 2), steps.length - many));
    const project = { ...rest, steps: steps.slice(first, first + many), at: at - first };
    const synced = steps[at] === this.sent;
    const kept = { id: this.puzzle.id, version: this.version, synced, job: this.job, project };
    try {
      sessionStorage.setItem(STORED, JSON.stringify(kept));
    } catch {
      sessionStorage.setItem(STORED, JSON.stringify({ ...kept, project: null })); // the server has what is shown
    }
  }

  async share() {
    if (!this.puzzle || this.torn || this.sharing) return;
    const { steps, at } = this.project();
    const step = steps[at];
    if (step === this.sent || (!this.sent && !this.version && steps.length === 1 && !step.solution)) return;
    this.sharing = true;
    const { puzzle } = this;
    try {
      const answer = await call("PUT", `/api/puzzles/${puzzle.id}/state`, { base: this.version, step });
      if (this.puzzle === puzzle) {
        this.version = (await answer.json()).version;
        this.sent = step;
        this.write();
      }
    } catch (error) {
      if (error.status === 409 && this.puzzle === puzzle) await this.meet(step);
    }
    this.sharing = false;
  }

  // Another window was faster. When both came to the same there is nothing to say.
  async meet(step) {
    const theirs = await get(`/api/puzzles/${this.puzzle.id}/state`);
    if (JSON.stringify(theirs.step) === JSON.stringify(step)) {
      this.version = theirs.version;
      return;
    }
    this.torn = true;
    this.conflict(theirs);
  }

  // The person has decided whose state counts.
  settle(version) {
    this.torn = false;
    this.version = version;
    this.sent = null;
    this.keep(this.project);
  }

  // What was on the table before a reload: { puzzle, project, theirs, job } or null.
  async restored() {
    let kept;
    try {
      kept = JSON.parse(sessionStorage.getItem(STORED));
      if (!kept) return null;
      const puzzle = await this.opened(kept.id);
      let theirs = null;
      if (puzzle.version > kept.version || (!kept.project && puzzle.version)) {
        theirs = await get(`/api/puzzles/${kept.id}/state`);
        if (!kept.project) kept.project = { steps: [theirs.step], at: 0 };
        if (JSON.stringify(kept.project.steps[kept.project.at]) === JSON.stringify(theirs.step)) {
          kept.version = theirs.version;
          kept.synced = true;
          theirs = null;
        }
      }
      const synced = kept.synced && !theirs;
      return { puzzle, project: kept.project, version: kept.version, synced, theirs, job: puzzle.job ?? kept.job };
    } catch (error) {
      // A request that a second reload cut off says nothing of the puzzle; an answer does.
      if (error.status === 404 || error instanceof SyntaxError) sessionStorage.removeItem(STORED);
      return null;
    }
  }
}
