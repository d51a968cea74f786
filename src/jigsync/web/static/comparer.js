// Two candidates for one cell, each among the cell's neighbours.

import { post } from "./api.js";
import { box, make, pictureOf, transformOf } from "./stage.js";
import { degrees, isPlaced, moveFragment, occupant, placed } from "./state.js";

const $ = (id) => document.getElementById(id);
const percent = (p) => {
  const words = p >= 0.995 ? "> 99 %" : p < 0.005 ? "< 1 %" : `${Math.round(100 * p)} %`;
  return words.replaceAll(" ", "\u00a0");
};

export class Comparer {
  constructor(decided) {
    this.decided = decided; // gets the step after "use this one"
    $("keep-a").addEventListener("click", () => $("comparer").close());
    $("use-b").addEventListener("click", () => {
      $("comparer").close();
      const { id, turns } = this.b;
      this.decided(moveFragment(this.step, id, this.row, this.col, turns), id);
    });
  }

  async open(puzzle, step, pitch, row, col) {
    Object.assign(this, { puzzle, step, pitch, row, col });
    const found = await post(`/api/puzzles/${puzzle.id}/candidates`, { solution: step.solution, row, col, limit: 8 });
    const candidates = found.filter((c) => !step.excluded.includes(c.id));
    const here = occupant(step, row, col);
    const now = here && { id: here, turns: placed(step, here).turns };
    this.a = (now && candidates.find((c) => c.id === now.id && c.turns === now.turns)) ?? now;
    const others = candidates.filter((c) => c.id !== now?.id || c.turns !== now.turns);
    if (!others.length) throw new Error("There is no other candidate for this cell.");
    $("comparer-title").textContent = `Which one belongs in row ${row + 1}, column ${col + 1}?`;
    $("others").replaceChildren(...others.map((c) => this.choice(c)));
    this.view($("view-a"), this.a);
    $("caption-a").textContent = this.a ? this.words(this.a, "now here") : "The cell is empty.";
    this.choose(others[0]);
    $("comparer").showModal();
    // A dialog has no width before it is shown.
    this.view($("view-a"), this.a);
    this.view($("view-b"), this.b);
  }

  words(candidate, place) {
    const sure = candidate.probability === undefined ? "" : `, fits with ${percent(candidate.probability)}`;
    return `${candidate.id}, ${place}${sure}`;
  }

  whereabouts(id) {
    const p = placed(this.step, id);
    if (p.row === this.row && p.col === this.col) return "the same, turned";
    return isPlaced(this.step, id) ? `now in row ${p.row + 1}, column ${p.col + 1}` : "not placed";
  }

  choose(candidate) {
    this.b = candidate;
    this.view($("view-b"), candidate);
    $("caption-b").textContent = this.words(candidate, this.whereabouts(candidate.id));
    for (const button of $("others").children) {
      button.setAttribute("aria-pressed", String(button.dataset.id === candidate.id));
    }
  }

  choice(candidate) {
    const button = make("button", "");
    button.type = "button";
    button.dataset.id = candidate.id;
    const mini = button.appendChild(make("span", "mini"));
    this.put(mini, candidate.id, candidate.turns, 30, 30, 42 / Math.max(...this.pitch));
    button.append(`${candidate.id} ${percent(candidate.probability)}`);
    button.addEventListener("click", () => this.choose(candidate));
    return button;
  }

  // The cell with its eight neighbours, the candidate in the middle.
  view(root, candidate) {
    root.replaceChildren();
    const side = root.clientWidth || 300;
    const scale = side / 2.2 / Math.max(...this.pitch);
    const [height, width] = this.pitch.map((p) => p * scale);
    for (let down = -1; down <= 1; down += 1) {
      for (let right = -1; right <= 1; right += 1) {
        const middle = !down && !right;
        const id = middle ? candidate?.id : occupant(this.step, this.row + down, this.col + right);
        if (!id || (!middle && id === candidate?.id)) continue;
        const turns = middle ? candidate.turns : placed(this.step, id).turns;
        this.put(root, id, turns, side / 2 + right * width, side / 2 + down * height, scale);
      }
    }
    box(root.appendChild(make("div", "frame")), side / 2 - width / 2, side / 2 - height / 2, width, height);
  }

  put(root, id, turns, x, y, scale) {
    const fragment = this.puzzle.fragments.find((f) => f.id === id);
    const element = root.appendChild(pictureOf(this.puzzle, fragment));
    element.lastChild.remove(); // no tint here
    element.style.transform = transformOf(fragment, x, y, degrees(turns), scale);
  }
}
