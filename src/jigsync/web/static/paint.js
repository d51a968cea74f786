// How things on the free canvas look that are not fragments: what is chosen, locked, proposed, uncertain.

import { clockwise } from "./poses.js";

const NAMES = ["ink", "soft", "line", "accent", "accent-ink", "warn", "card", "table", "stripe"];
let known = null;

// The page's colours, by the names of workbench.css; read again when the theme changes.
export function palette() {
  const theme = document.documentElement.dataset.theme;
  if (known?.theme !== theme) {
    const style = getComputedStyle(document.documentElement);
    known = { theme };
    for (const name of NAMES) known[name.replace("-i", "I")] = style.getPropertyValue(`--${name}`).trim();
  }
  return known;
}

export function stripes(context, colours) {
  const tile = new OffscreenCanvas(12, 12);
  const on = tile.getContext("2d");
  on.strokeStyle = colours.stripe;
  on.lineWidth = 3;
  for (const shift of [-12, 0, 12]) {
    on.beginPath();
    on.moveTo(shift - 3, 15);
    on.lineTo(shift + 15, -3);
    on.stroke();
  }
  return context.createPattern(tile, "repeat");
}

const AROUND = Array.from({ length: 8 }, (_, k) => [Math.cos((k * Math.PI) / 4), Math.sin((k * Math.PI) / 4)]);
export const MOST_RIMS = 80; // chosen fragments whose rim is drawn; beyond that a frame around all must do

// A coloured rim along a fragment's own outline.
export function drawRim(context, table, id, pose, colours, view) {
  const shape = table.bitmaps.shape(id, `rim ${colours.accent}`, colours.accent);
  if (!shape) return;
  const far = (3 * table.dense) / view.k;
  for (const [dx, dy] of AROUND) {
    table.frame(context, id, { ...pose, x: pose.x + far * dx, y: pose.y + far * dy }, view);
    context.drawImage(shape, -0.5, -0.5, 1, 1);
  }
}

// A place that was proposed: the fragment, half there.
export function drawGhost(context, table, ghost, colours, view) {
  const bitmap = table.bitmaps.get(ghost.id, 200);
  const shape = table.bitmaps.shape(ghost.id, `rim ${colours.accent}`, colours.accent);
  if (!bitmap || !shape) return;
  const far = 2 / table.camera.k;
  context.globalAlpha = ghost.near ? 0.9 : 0.5;
  for (const [dx, dy] of AROUND) {
    table.frame(context, ghost.id, { ...ghost, x: ghost.x + far * dx, y: ghost.y + far * dy }, view);
    context.drawImage(shape, -0.5, -0.5, 1, 1);
  }
  table.frame(context, ghost.id, ghost, view);
  context.globalAlpha = ghost.near ? 1 : 0.75;
  context.drawImage(bitmap, -0.5, -0.5, 1, 1);
  context.globalAlpha = 1;
}

// A round badge: a number, a lock, or that it does not belong.
export function drawBadge(context, [x, y], what, colours) {
  const out = what === "out";
  context.beginPath();
  context.arc(x, y, 11, 0, 2 * Math.PI);
  context.fillStyle = out ? colours.warn : colours.accent;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = colours.card;
  context.stroke();
  context.strokeStyle = context.fillStyle = out ? colours.card : colours.accentInk;
  if (typeof what === "number") {
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(String(what), x, y + 0.5);
    context.textBaseline = "alphabetic";
  } else if (out) {
    context.beginPath();
    context.moveTo(x - 5, y + 5);
    context.lineTo(x + 5, y - 5);
    context.stroke();
  } else {
    context.fillRect(x - 4.5, y - 1, 9, 6.5);
    context.beginPath();
    context.arc(x, y - 1.5, 3, Math.PI, 0);
    context.stroke();
  }
}

// The handle that turns what is chosen.
export function drawHandle(context, { at, from }, colours) {
  context.strokeStyle = colours.accent;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(...from);
  context.lineTo(...at);
  context.stroke();
  context.beginPath();
  context.arc(...at, 10, 0, 2 * Math.PI);
  context.fillStyle = colours.card;
  context.fill();
  context.stroke();
  context.beginPath();
  context.arc(...at, 5, clockwise(-30), clockwise(240));
  context.stroke();
  const [x, y] = at;
  context.beginPath();
  context.moveTo(x + 1, y + 4.5);
  context.lineTo(x - 4, y + 6.5);
  context.lineTo(x - 3, y + 1.5);
  context.fillStyle = colours.accent;
  context.fill();
}

// The frame that a person draws around fragments.
export function drawFrame(context, [left, top, right, bottom], colours) {
  context.strokeStyle = colours.accent;
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.strokeRect(left, top, right - left, bottom - top);
  context.setLineDash([]);
}
