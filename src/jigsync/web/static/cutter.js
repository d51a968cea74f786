// "Cut my own picture": sliders with a live preview.

import { post, postForBlob } from "./api.js";
import { make } from "./stage.js";

const $ = (id) => document.getElementById(id);
const AXES = ["shape", "erosion", "photo"];
const SHOWN = {
  shape: (v) => `${v} px`,
  erosion: (v) => `${Math.round(100 * v)} %`,
  photo: (v) => `${Math.round(100 * v)} %`,
};

export class Cutter {
  constructor(about, made) {
    this.about = about;
    this.made = made;
    this.seed = 0;
    this.picture = "astronaut";
    this.own = null;
    for (const name of about.pictures) this.chip($("pictures"), name, () => this.choose(name));
    this.ownChip = this.chip($("pictures"), "my own…", () => $("own").click());
    for (const [name, damage] of Object.entries(about.severities)) {
      this.chip($("severities"), name, () => this.damage(damage));
    }
    $("own").addEventListener("change", () => this.upload($("own").files[0]));
    for (const axis of AXES) $(axis).addEventListener("input", () => this.changed());
    for (const side of ["rows", "cols"]) $(side).addEventListener("input", () => this.changed());
    $("again").addEventListener("click", () => {
      this.seed += 1;
      this.changed();
    });
    $("make").addEventListener("click", () => this.make());
    $("cutter").addEventListener("close", () => clearTimeout(this.timer));
  }

  chip(parent, text, action) {
    const button = parent.appendChild(make("button", ""));
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", action);
    return button;
  }

  open(file) {
    if (!this.opened) this.damage(this.about.severities.medium);
    this.opened = true;
    $("cutter").showModal();
    if (file) this.upload(file);
    else this.changed();
  }

  choose(picture) {
    this.picture = picture;
    this.changed();
  }

  damage(damage) {
    for (const axis of AXES) $(axis).value = damage[axis];
    this.changed();
  }

  async upload(file) {
    $("own").value = "";
    if (!file) return;
    const form = new FormData();
    form.append("file", file, file.name);
    try {
      this.own = await post("/api/pictures", form);
      this.ownChip.textContent = this.own.name;
      this.choose(this.own.id);
    } catch (error) {
      this.problem(error.message);
    }
  }

  options() {
    const number = (id) => Number($(id).value);
    const axes = Object.fromEntries(AXES.map((axis) => [axis, number(axis)]));
    return { picture: this.picture, rows: number("rows"), cols: number("cols"), seed: this.seed, ...axes };
  }

  problem(text) {
    $("cutter-problem").textContent = text;
  }

  changed() {
    const now = this.options();
    for (const axis of AXES) $(`${axis}-out`).textContent = SHOWN[axis](now[axis]);
    for (const chip of $("pictures").children) {
      const name = chip === this.ownChip ? this.own?.id : chip.textContent;
      chip.setAttribute("aria-pressed", String(name === this.picture));
    }
    for (const chip of $("severities").children) {
      const damage = this.about.severities[chip.textContent];
      chip.setAttribute("aria-pressed", String(AXES.every((axis) => damage[axis] === now[axis])));
    }
    clearTimeout(this.timer);
    if ($("cutter").open) this.timer = setTimeout(() => this.preview(), 120);
  }

  // One preview at a time; a change meanwhile asks for one more.
  async preview() {
    if (this.drawing) {
      this.stale = true;
      return;
    }
    this.drawing = true;
    $("preview").classList.add("stale");
    try {
      const wrong = ["rows", "cols"].find((side) => !$(side).checkValidity());
      if (wrong) throw new Error("Rows and columns go from 1 to 30.");
      const url = URL.createObjectURL(await postForBlob("/api/cuts/preview", this.options()));
      const old = $("preview").src;
      $("preview").src = url;
      if (old) URL.revokeObjectURL(old);
      this.problem("");
    } catch (error) {
      this.problem(error.message);
    }
    this.drawing = false;
    $("preview").classList.toggle("stale", Boolean(this.stale));
    if (this.stale) {
      this.stale = false;
      this.preview();
    }
  }

  async make() {
    $("make").disabled = true;
    try {
      const puzzle = await post("/api/cuts", this.options());
      $("cutter").close();
      this.made(puzzle);
    } catch (error) {
      this.problem(error.message);
    }
    $("make").disabled = false;
  }
}
