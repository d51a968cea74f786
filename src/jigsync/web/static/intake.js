// What a person drops or chooses -> a list of files with their relative names.

export function listenForDrops(area, take) {
  let depth = 0;
  const over = (on) => area.classList.toggle("over", on);
  window.addEventListener("dragenter", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    depth += 1;
    over(true);
  });
  window.addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (!depth) over(false);
  });
  window.addEventListener("dragover", (event) => event.preventDefault());
  window.addEventListener("drop", async (event) => {
    event.preventDefault();
    depth = 0;
    over(false);
    const files = await dropped(event.dataTransfer);
    if (files.length) take(files);
  });
}

async function dropped(transfer) {
  // Entries must be asked for before the first await: the browser forgets them afterwards.
  const entries = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry?.());
  if (entries.some((entry) => !entry)) return [...transfer.files].map((file) => ({ file, name: file.name }));
  return (await Promise.all(entries.map((entry) => walk(entry, "")))).flat();
}

async function walk(entry, folder) {
  const name = folder + entry.name;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return [{ file, name }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found.flat();
    found.push(...(await Promise.all(some.map((below) => walk(below, `${name}/`)))));
  }
}

export const chosen = (input) => [...input.files].map((file) => ({ file, name: file.webkitRelativePath || file.name }));

export function formOf(files, limits) {
  const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
  if (bytes > limits.upload_bytes) {
    const mb = (n) => Math.round(n / 1e6);
    throw new Error(`These files have ${mb(bytes)} MB together; at most ${mb(limits.upload_bytes)} MB are taken.`);
  }
  const form = new FormData();
  for (const { file, name } of files) form.append("files", file, name);
  return form;
}
