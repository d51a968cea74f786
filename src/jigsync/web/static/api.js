// The HTTP interface as functions. Every refusal becomes an Error whose message is the server's sentence.

export async function call(method, path, body) {
  const options = { method, headers: {} };
  if (body instanceof FormData) {
    options.body = body;
  } else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer. Is `jigsync serve` still running?");
  }
  if (!answer.ok) throw Object.assign(new Error(await sentence(answer)), { status: answer.status });
  return answer;
}

async function sentence(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `The server refused with code ${answer.status}.`;
  }
}

export const get = async (path) => (await call("GET", path)).json();
export const post = async (path, body) => (await call("POST", path, body)).json();
export const postForBlob = async (path, body) => (await call("POST", path, body)).blob();

export async function drop(path) {
  try {
    await fetch(path, { method: "DELETE", keepalive: true });
  } catch {
    // The server lets go of it by itself in time.
  }
}

// Follows a job; `seen` gets every state of it. Resolves with the last one.
export function follow(job, seen) {
  return new Promise((resolve, reject) => {
    const stream = new EventSource(`/api/jobs/${job}/events`);
    let failures = 0;
    stream.addEventListener("progress", (event) => {
      failures = 0;
      seen(JSON.parse(event.data));
    });
    stream.addEventListener("end", (event) => {
      stream.close();
      resolve(JSON.parse(event.data));
    });
    stream.onerror = () => {
      failures += 1;
      if (failures < 4 && stream.readyState !== EventSource.CLOSED) return;
      stream.close();
      get(`/api/jobs/${job}`).then(
        (last) => {
          if (["waiting", "running"].includes(last.state)) follow(job, seen).then(resolve, reject);
          else resolve(last);
        },
        reject,
      );
    };
  });
}
