// A picture of many fragments that is painted a little in every frame, and shown in the meantime as it was.
//
// What is shown may have been painted for another view of the table: it is moved and scaled to the one there is now, as
// maps are, until the new one is ready. So no frame takes longer because there are a thousand fragments.

const BUDGET = 9; // ms of a frame for painting
const AT_ONCE = 12; // fragments between two looks at the clock

export class Layer {
  constructor() {
    this.front = null; // { canvas, view }
    this.back = null; // { canvas, view, todo }
    this.spare = null;
    this.glance = new OffscreenCanvas(1, 1).getContext("2d");
  }

  // Begins anew; what is half done is given up only where that is asked for.
  begin(view, todo, anew) {
    if (this.back && !anew) return;
    const canvas = this.back?.canvas ?? this.spare ?? new OffscreenCanvas(1, 1);
    this.spare = null;
    if (canvas.width !== view.pixels[0]) canvas.width = view.pixels[0];
    if (canvas.height !== view.pixels[1]) canvas.height = view.pixels[1];
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    this.back = { canvas, view, todo, at: 0 };
  }

  get busy() {
    return this.back !== null;
  }

  // Paints for a while; true when something new is shown.
  work(paint) {
    const { back } = this;
    if (!back) return false;
    const context = back.canvas.getContext("2d");
    const end = performance.now() + BUDGET;
    while (back.at < back.todo.length) {
      for (const one of back.todo.slice(back.at, back.at + AT_ONCE)) paint(context, one, back.view);
      back.at += AT_ONCE;
      this.glance.drawImage(back.canvas, 0, 0); // so that what was asked for is done now, and its time counts
      if (performance.now() > end && back.at < back.todo.length) return false;
    }
    this.spare = this.front?.canvas ?? null;
    this.front = { canvas: back.canvas, view: back.view };
    this.back = null;
    return true;
  }

  // Puts what is shown where it is in the view of now, after a motion of the table { angle, x, y } when there is one.
  draw(context, view, motion = null) {
    if (!this.front) return;
    const { canvas, view: then } = this.front;
    const k = view.k / then.k;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.transform(view.k, 0, 0, view.k, -view.x * view.k, -view.y * view.k);
    if (motion) {
      context.translate(motion.x, motion.y);
      context.rotate((-motion.angle * Math.PI) / 180);
    }
    context.transform(1 / then.k, 0, 0, 1 / then.k, then.x, then.y);
    context.imageSmoothingEnabled = Math.abs(k - 1) > 1e-6 || Boolean(motion?.angle);
    context.drawImage(canvas, 0, 0);
    context.restore();
  }

  forget() {
    this.back = this.front = null;
  }
}
