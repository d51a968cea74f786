// Poses as files have them: { angle, x, y }, x_canvas = R(angle)(x_frag - centre) + (x, y), degrees counter-clockwise as
// displayed, x right, y down (docs/conventions.md, 11 and 12). A canvas and CSS turn clockwise: only `clockwise` knows.

export const wrap = (degrees) => ((((degrees + 180) % 360) + 360) % 360) - 180;
export const clockwise = (degrees) => (-degrees * Math.PI) / 180;

// R(angle) of a vector.
export function act(degrees, [x, y]) {
  const a = (degrees * Math.PI) / 180;
  const [cos, sin] = [Math.cos(a), Math.sin(a)];
  return [cos * x + sin * y, -sin * x + cos * y];
}

export const shifted = (pose, dx, dy) => ({ ...pose, x: pose.x + dx, y: pose.y + dy });

// A further turn of the canvas about one of its points.
export function turnedAbout(pose, [x, y], degrees) {
  const [dx, dy] = act(degrees, [pose.x - x, pose.y - y]);
  return { angle: wrap(pose.angle + degrees), x: x + dx, y: y + dy };
}

export function middleOf(poses) {
  const xs = poses.map((p) => p.x);
  const ys = poses.map((p) => p.y);
  return [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
}

// Half the sides of the upright box around a turned rectangle.
export function reachOf({ width, height }, angle) {
  const a = (angle * Math.PI) / 180;
  const [cos, sin] = [Math.abs(Math.cos(a)), Math.abs(Math.sin(a))];
  return [(cos * width + sin * height) / 2, (sin * width + cos * height) / 2];
}
