// What a person takes away: pictures, layers, tables, a sheet for the table, the project.

import { postForBlob } from "./api.js";

const WAYS = {
  picture: { path: "picture", suffix: ".png" },
  tiff: { path: "picture", suffix: ".tif", format: "tiff" },
  gaps: { path: "picture", suffix: "-gaps.png", gaps: true },
  svg: { path: "picture", suffix: ".svg", format: "svg" },
  ora: { path: "picture", suffix: ".ora", format: "ora" },
  sheet: { path: "picture", suffix: "-sheet.pdf", format: "sheet" },
  table: { path: "table", suffix: ".csv" },
  solution: { path: "solution", suffix: "-solution.json" },
  project: { path: "project", suffix: ".jigsync.zip" },
};

// Saves one of WAYS; resolves with the file's name.
export async function keep(what, puzzle, step, project) {
  const { path, suffix, ...more } = WAYS[what];
  const stem = puzzle.name.replace(/[^\w.-]+/g, "-").replace(/^[-.]+/, "") || "puzzle";
  const body = { picture: { solution: step.solution, ...more }, table: { step }, solution: { step }, project }[path];
  const url = URL.createObjectURL(await postForBlob(`/api/puzzles/${puzzle.id}/${path}`, body));
  const link = document.createElement("a");
  link.href = url;
  link.download = stem + suffix;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return link.download;
}
