// What part of the table is seen: screen = k (table - [x, y]), table in pixels of the fragments.

const LEAST = 0.004;
const MOST = 24;

export class Camera {
  constructor() {
    Object.assign(this, { x: 0, y: 0, k: 1, width: 1, height: 1 });
  }

  toTable(sx, sy) {
    return [this.x + sx / this.k, this.y + sy / this.k];
  }

  toScreen(x, y) {
    return [(x - this.x) * this.k, (y - this.y) * this.k];
  }

  pan(sx, sy) {
    this.x -= sx / this.k;
    this.y -= sy / this.k;
  }

  // Zooms so that what is at a point of the screen stays there.
  zoom(factor, sx = this.width / 2, sy = this.height / 2) {
    const [x, y] = this.toTable(sx, sy);
    this.k = Math.min(MOST, Math.max(LEAST, this.k * factor));
    this.x = x - sx / this.k;
    this.y = y - sy / this.k;
  }

  // Shows a box of the table as large as it gets.
  fit([left, top, right, bottom], rim = 28) {
    const room = [Math.max(40, this.width - 2 * rim), Math.max(40, this.height - 2 * rim)];
    this.k = Math.min(room[0] / Math.max(1, right - left), room[1] / Math.max(1, bottom - top), 4);
    this.x = (left + right) / 2 - this.width / 2 / this.k;
    this.y = (top + bottom) / 2 - this.height / 2 / this.k;
  }

  sees([x, y], reach) {
    const [sx, sy] = this.toScreen(x, y);
    const r = reach * this.k;
    return sx > -r && sy > -r && sx < this.width + r && sy < this.height + r;
  }
}
