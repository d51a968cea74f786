// The table: fragments as pictures that glide to their places, and cells above them that can be pointed at.

import { degrees, describe, isPlaced, occupant, placed } from "./state.js";

const TRAY_SLOT = 92; // px
const RIM = 0.28; // of a cell: room for what sticks out of the grid
const HELD = 220; // ms a finger rests on a fragment before it is picked up
const STIRRED = 5; // px a mouse moves before a press becomes a drag

export class Stage {
  constructor(root, actions) {
    this.root = root;
    this.actions = actions; // { choose(id, spot), dropAt(id, spot), move(spot) }
    this.fragments = new Map();
    this.angles = new Map();
    this.spots = [];
    this.chosen = null; // the spot that has the focus: { row, col } or { tray: id }
    this.carried = null;
    this.dragging = false;
    // Listening all along: a browser asks at the first touch whether somebody may want to stop the scrolling.
    root.addEventListener("touchmove", (event) => this.dragging && event.preventDefault(), { passive: false });
    root.addEventListener("contextmenu", (event) => this.dragging && event.preventDefault());
    new ResizeObserver(() => this.resized()).observe(root);
  }

  open(puzzle) {
    this.puzzle = puzzle;
    this.step = null;
    this.root.replaceChildren();
    this.pictures = this.root.appendChild(make("div", "pictures"));
    this.pictures.setAttribute("aria-hidden", "true");
    this.outline = this.pictures.appendChild(make("div", "board-outline"));
    this.cells = this.root.appendChild(make("div", "cells"));
    this.fragments.clear();
    this.angles.clear();
    this.chosen = null;
    for (const fragment of puzzle.fragments) {
      const element = this.pictures.appendChild(pictureOf(puzzle, fragment));
      this.fragments.set(fragment.id, { ...fragment, element });
      this.angles.set(fragment.id, 0);
    }
  }

  resized() {
    if (this.step && this.root.clientWidth && this.root.clientWidth !== this.width) this.show(this.step, this.pitch, this.live);
  }

  // Draws a step. `live`: the solver is at work, nothing can be touched.
  show(step, pitch, live = false) {
    this.step = step;
    this.pitch = pitch;
    this.live = live;
    this.width = this.root.clientWidth || 600;
    this.root.classList.toggle("solving", live);
    const layout = this.layout(step, pitch);
    this.root.style.height = `${layout.height}px`;
    this.drawPictures(step, layout);
    this.drawCells(step, layout);
  }

  layout(step, [pitchHeight, pitchWidth]) {
    const [rows, cols] = step.solution.grid;
    const room = Math.max(280, Math.min(window.innerHeight * 0.72, 900));
    const scale = Math.min(
      (this.width - 16) / ((cols + 2 * RIM) * pitchWidth),
      room / ((rows + 2 * RIM) * pitchHeight),
      160 / Math.min(pitchWidth, pitchHeight),
    );
    const cell = { width: pitchWidth * scale, height: pitchHeight * scale };
    const left = (this.width - cols * cell.width) / 2;
    const top = RIM * cell.height + 10;
    let bottom = top + rows * cell.height + RIM * cell.height + 14;
    const ids = this.puzzle.fragments.map((f) => f.id).filter((id) => !isPlaced(step, id));
    const tray = { ids, top: bottom, slots: new Map() };
    if (ids.length) {
      const most = Math.max(1, Math.floor((this.width - 16) / TRAY_SLOT));
      const across = Math.ceil(ids.length / Math.ceil(ids.length / most)); // no almost empty last row
      const begin = (this.width - Math.min(across, ids.length) * TRAY_SLOT) / 2;
      const first = bottom + 34;
      ids.forEach((id, k) => {
        const [col, row] = [k % across, Math.floor(k / across)];
        tray.slots.set(id, { left: begin + col * TRAY_SLOT, top: first + row * TRAY_SLOT, size: TRAY_SLOT });
      });
      bottom = first + Math.ceil(ids.length / across) * TRAY_SLOT + 12;
    }
    return { board: { rows, cols, left, top, cell, scale }, tray, height: Math.max(190, bottom) };
  }

  drawPictures(step, layout) {
    const { board, tray } = layout;
    box(this.outline, board.left, board.top, board.cols * board.cell.width, board.rows * board.cell.height);
    const [pitchHeight, pitchWidth] = this.pitch;
    const usual = Math.max(pitchHeight, pitchWidth);
    for (const [id, fragment] of this.fragments) {
      const { element } = fragment;
      const at = placed(step, id);
      let x, y, scale;
      if (at && at.row != null) {
        scale = board.scale;
        // A fragment may lie a little off the middle of its cell.
        x = board.left + (at.x != null ? at.x / pitchWidth : at.col + 0.5) * board.cell.width;
        y = board.top + (at.y != null ? at.y / pitchHeight : at.row + 0.5) * board.cell.height;
      } else {
        const slot = tray.slots.get(id);
        scale = (slot.size * 0.68) / usual;
        x = slot.left + slot.size / 2;
        y = slot.top + slot.size / 2;
      }
      fragment.x = x;
      fragment.y = y;
      fragment.scale = scale;
      element.style.transform = this.transform(fragment, x, y, this.angle(id, at?.turns ?? 0));
      element.classList.toggle("out", step.excluded.includes(id));
      const sure = at && at.row != null && at.confidence != null && !this.live ? at.confidence : 1;
      element.lastChild.style.opacity = sure >= 0.8 ? "0" : String(0.4 + 0.5 * (1 - sure));
    }
  }

  // The angle nearest to the one shown, so that a fragment never spins the long way round.
  angle(id, turns) {
    const shown = this.angles.get(id);
    const wanted = degrees(turns);
    const next = wanted + 360 * Math.round((shown - wanted) / 360);
    this.angles.set(id, next);
    return next;
  }

  transform(fragment, x, y, angle) {
    return transformOf(fragment, x, y, angle, fragment.scale);
  }

  drawCells(step, layout) {
    const focused = this.cells.contains(document.activeElement);
    this.spots = [];
    const children = [];
    children.push(this.grid(step, layout.board));
    if (layout.tray.ids.length) children.push(...this.tray(step, layout));
    this.cells.replaceChildren(...children);
    const again = this.spots.find((spot) => same(spot, this.chosen)) ?? this.spotOf(this.chosenId) ?? this.spots[0];
    if (!again) return;
    again.element.tabIndex = 0;
    if (focused) again.element.focus({ preventScroll: true });
    if (this.chosen) this.mark();
  }

  grid(step, board) {
    const grid = make("div", "board");
    grid.setAttribute("role", "grid");
    grid.setAttribute("aria-label", `Assembled picture, ${board.rows} rows and ${board.cols} columns`);
    for (let row = 0; row < board.rows; row += 1) {
      const line = grid.appendChild(make("div", ""));
      line.setAttribute("role", "row");
      for (let col = 0; col < board.cols; col += 1) {
        const id = occupant(step, row, col);
        const cell = line.appendChild(make("div", "cell"));
        cell.setAttribute("role", "gridcell");
        cell.setAttribute("aria-label", id ? describe(step, id) : `row ${row + 1}, column ${col + 1}, empty`);
        const { width, height } = board.cell;
        box(cell, board.left + col * width, board.top + row * height, width, height);
        if (id && step.pinned.includes(id)) cell.append(badge("pinned"));
        this.listen(cell, { row, col, id, element: cell });
      }
    }
    return grid;
  }

  tray(step, layout) {
    const { tray } = layout;
    const list = make("div", "tray-list");
    list.setAttribute("role", "list");
    list.setAttribute("aria-label", "Fragments that are not placed");
    for (const id of tray.ids) {
      const slot = tray.slots.get(id);
      const item = list.appendChild(make("div", ""));
      item.setAttribute("role", "listitem");
      const cell = item.appendChild(make("button", "cell"));
      cell.type = "button";
      cell.setAttribute("aria-label", describe(step, id));
      box(cell, slot.left + 4, slot.top + 4, slot.size - 8, slot.size - 8);
      if (step.excluded.includes(id)) cell.append(badge("exclude", "no"));
      this.listen(cell, { tray: id, id, element: cell });
    }
    const line = make("div", "tray");
    box(line, 0, tray.top, this.width, 1);
    const title = make("p", "tray-title");
    title.textContent = "Not placed";
    box(title, 16, tray.top + 12, 200, 16);
    return [line, title, list];
  }

  listen(element, spot) {
    element.tabIndex = -1;
    this.spots.push(spot);
    element.addEventListener("pointerdown", (event) => this.pressed(event, spot));
    element.addEventListener("focus", () => this.choose(spot));
    element.addEventListener("keydown", (event) => this.key(event, spot));
    element.addEventListener("click", (event) => {
      if (this.quiet) return;
      this.choose(spot);
      element.focus({ preventScroll: true });
      if (this.carried && event.detail !== 0) this.actions.dropAt(this.carried, spot);
    });
  }

  choose(spot) {
    this.chosen = spot.tray ? { tray: spot.tray } : { row: spot.row, col: spot.col };
    this.chosenId = spot.id;
    for (const other of this.spots) other.element.tabIndex = -1;
    spot.element.tabIndex = 0;
    this.mark();
    this.actions.choose(spot.id, spot);
  }

  letGo() {
    this.chosen = null;
    this.chosenId = null;
    this.mark();
    this.actions.choose(null, null);
  }

  mark() {
    for (const spot of this.spots) spot.element.classList.toggle("chosen", same(spot, this.chosen));
  }

  spotOf(id) {
    return id ? this.spots.find((spot) => spot.id === id) : null;
  }

  // Follows a fragment to where it stands now.
  choosePlaceOf(id) {
    const spot = this.spotOf(id);
    if (spot) {
      this.choose(spot);
      spot.element.focus({ preventScroll: true });
    }
  }

  carry(id) {
    this.carried = id;
    this.root.classList.toggle("carrying", Boolean(id));
  }

  key(event, spot) {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.neighbour(spot, ...steps[event.key])?.element.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.carried) this.actions.dropAt(this.carried, spot);
      else if (spot.id) this.actions.pickUp(spot.id);
    }
  }

  neighbour(spot, down, right) {
    const middle = (s) => {
      const r = s.element.getBoundingClientRect();
      return [r.left + r.width / 2, r.top + r.height / 2];
    };
    const [x, y] = middle(spot);
    let best = null;
    for (const other of this.spots) {
      const [dx, dy] = [middle(other)[0] - x, middle(other)[1] - y];
      const along = right ? dx * right : dy * down;
      const aside = Math.abs(right ? dy : dx);
      if (along > 4 && along + 3 * aside < (best?.cost ?? Infinity)) best = { spot: other, cost: along + 3 * aside };
    }
    return best?.spot;
  }

  // ------------------------------------------------------------------------------------------ dragging

  pressed(event, spot) {
    if (!spot.id || this.live || event.button !== 0 || this.carried) return;
    const drag = { id: spot.id, x: event.clientX, y: event.clientY, on: false, target: null };
    const touch = event.pointerType !== "mouse";
    const fragment = this.fragments.get(spot.id);
    const begin = () => {
      drag.on = this.dragging = true;
      fragment.element.classList.add("dragged");
      this.choose(spot);
      follow(drag.x, drag.y);
    };
    const follow = (x, y) => {
      const base = this.root.getBoundingClientRect();
      const angle = this.angles.get(drag.id);
      fragment.element.style.transform = this.transform(fragment, x - base.left, y - base.top, angle);
      const under = document.elementsFromPoint(x, y).find((e) => e.classList?.contains("cell"));
      drag.target = this.spots.find((s) => s.element === under) ?? null;
      for (const s of this.spots) s.element.classList.toggle("target", s === drag.target && s !== spot);
    };
    const moved = (e) => {
      if (drag.on) follow(e.clientX, e.clientY);
      else if (Math.hypot(e.clientX - drag.x, e.clientY - drag.y) > STIRRED) {
        if (touch) end();
        else begin();
      }
    };
    const timer = touch ? setTimeout(begin, HELD) : null;
    const end = (e) => {
      clearTimeout(timer);
      window.removeEventListener("pointermove", moved);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
      if (!drag.on) return;
      this.dragging = false;
      fragment.element.classList.remove("dragged");
      for (const s of this.spots) s.element.classList.remove("target");
      this.quiet = true; // the click that follows is the end of the drag
      setTimeout(() => (this.quiet = false), 0);
      const inTray = this.step.solution && e && !drag.target && this.below(e.clientX, e.clientY);
      if (e?.type === "pointerup" && (drag.target || inTray)) this.actions.dropAt(drag.id, drag.target ?? { tray: "" });
      else this.show(this.step, this.pitch);
    };
    window.addEventListener("pointermove", moved);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
  }

  // Is a point on the table but below the grid?
  below(x, y) {
    const table = this.root.getBoundingClientRect();
    const grid = this.outline.getBoundingClientRect();
    return x > table.left && x < table.right && y > grid.bottom && y < table.bottom;
  }
}

// The server sends fragments of at most this many pixels a side; larger layers would only cost memory.
const LARGEST = 400;
const shrink = ({ width, height }) => Math.min(1, LARGEST / Math.max(width, height));

// Puts a fragment's centre at (x, y); `scale` is in pixels of the page per pixel of the fragment.
export function transformOf(fragment, x, y, angle, scale) {
  const k = shrink(fragment);
  const [left, top] = [x - (fragment.width * k) / 2, y - (fragment.height * k) / 2];
  return `translate(${left}px, ${top}px) rotate(${angle}deg) scale(${scale / k})`;
}

export function pictureOf(puzzle, fragment) {
  const element = make("div", "fragment");
  const image = element.appendChild(make("img", ""));
  const source = `/api/puzzles/${puzzle.id}/fragments/${encodeURIComponent(fragment.id)}`;
  image.src = source;
  image.alt = "";
  image.draggable = false;
  const tint = element.appendChild(make("span", "tint"));
  tint.style.maskImage = `url("${source}")`;
  tint.style.webkitMaskImage = `url("${source}")`;
  element.style.width = `${fragment.width * shrink(fragment)}px`;
  element.style.height = `${fragment.height * shrink(fragment)}px`;
  return element;
}

export function make(tag, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  return element;
}

export function box(element, left, top, width, height) {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}

export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("aria-hidden", "true");
  svg.appendChild(document.createElementNS(space, "use")).setAttribute("href", `/static/icons.svg#${name}`);
  return svg;
}

function badge(name, kind = "") {
  const element = make("span", `badge ${kind}`);
  element.append(icon(name));
  return element;
}

function same(spot, chosen) {
  if (!spot || !chosen) return false;
  return chosen.tray ? spot.tray === chosen.tray : spot.row === chosen.row && spot.col === chosen.col;
}
