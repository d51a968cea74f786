// The fragments' pictures as bitmaps that a canvas draws fast: each in several sizes, with a small mask for the pointer.

const AT_ONCE = 6; // requests
const PIXELS = 48e6; // of all bitmaps of the largest size
const MASK = 48; // px of a mask's longer side

export class Bitmaps {
  constructor(puzzle, changed) {
    this.changed = changed;
    this.held = new Map();
    this.left = puzzle.fragments.length;
    this.most = Math.max(96, Math.min(400, Math.sqrt(PIXELS / puzzle.fragments.length)));
    const waiting = [...puzzle.fragments];
    for (let k = 0; k < AT_ONCE; k += 1) this.load(puzzle, waiting);
  }

  async load(puzzle, waiting) {
    for (let fragment = waiting.shift(); fragment && !this.closed; fragment = waiting.shift()) {
      try {
        const answer = await fetch(`/api/puzzles/${puzzle.id}/fragments/${encodeURIComponent(fragment.id)}`);
        if (answer.ok) this.held.set(fragment.id, await sizesOf(await answer.blob(), this.most));
      } catch {
        // It is drawn as a frame.
      }
      this.left -= 1;
      if (!this.closed) this.changed(this.left === 0);
    }
  }

  close() {
    this.closed = true;
    for (const { sizes } of this.held.values()) for (const size of sizes) size.close?.();
    this.held.clear();
  }

  // The smallest bitmap that is no smaller than so many pixels wide.
  get(id, width) {
    const found = this.held.get(id);
    if (!found) return null;
    let best = found.sizes[0];
    for (const size of found.sizes) if (size.width >= width) best = size;
    return best;
  }

  // Is there anything at a point of the fragment, given as shares of its width and height?
  covers(id, u, v) {
    const mask = this.held.get(id)?.mask;
    if (u < 0 || v < 0 || u >= 1 || v >= 1) return false;
    return !mask || mask.alpha[Math.floor(v * mask.height) * mask.width + Math.floor(u * mask.width)] > 40;
  }

  // What part of a fragment's picture shows something: [left, top, right, bottom] as shares.
  content(id) {
    return this.held.get(id)?.mask.box ?? [0, 0, 1, 1];
  }

  // The fragment's shape in one colour or pattern.
  shape(id, key, fill) {
    const found = this.held.get(id);
    if (!found) return null;
    found.shapes ??= new Map();
    if (!found.shapes.has(key)) {
      const source = found.sizes[Math.min(1, found.sizes.length - 1)];
      const canvas = new OffscreenCanvas(source.width, source.height);
      const context = canvas.getContext("2d");
      context.drawImage(source, 0, 0);
      context.globalCompositeOperation = "source-in";
      context.fillStyle = typeof fill === "function" ? fill(context) : fill;
      context.fillRect(0, 0, canvas.width, canvas.height);
      found.shapes.set(key, canvas);
    }
    return found.shapes.get(key);
  }

  forgetShapes() {
    for (const found of this.held.values()) found.shapes = null;
  }
}

async function sizesOf(blob, most) {
  const whole = await createImageBitmap(blob);
  const scale = Math.min(1, most / Math.max(whole.width, whole.height));
  const sizes = [scale < 1 ? await smaller(whole, scale) : whole];
  if (scale < 1) whole.close();
  while (Math.max(sizes.at(-1).width, sizes.at(-1).height) > 40) sizes.push(await smaller(sizes.at(-1), 0.5));
  return { sizes, mask: maskOf(sizes[0]), shapes: null };
}

function smaller(bitmap, scale) {
  const [resizeWidth, resizeHeight] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
  return createImageBitmap(bitmap, { resizeWidth, resizeHeight, resizeQuality: "high" });
}

function maskOf(bitmap) {
  const scale = Math.min(1, MASK / Math.max(bitmap.width, bitmap.height));
  const width = Math.max(1, Math.round(bitmap.width * scale));
  const height = Math.max(1, Math.round(bitmap.height * scale));
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const alpha = new Uint8Array(width * height);
  let [left, top, right, bottom] = [width, height, 0, 0];
  for (let k = 0; k < alpha.length; k += 1) {
    alpha[k] = data[4 * k + 3];
    if (alpha[k] < 40) continue;
    const [x, y] = [k % width, Math.floor(k / width)];
    [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + 1), Math.max(bottom, y + 1)];
  }
  const box = right ? [left / width, top / height, right / width, bottom / height] : [0, 0, 1, 1];
  return { width, height, alpha, box };
}
