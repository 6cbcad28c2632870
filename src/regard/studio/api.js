// The service, as functions. A problem is thrown as an Error whose message is the service's own line.

export class Problem extends Error {
  constructor(status, {error, hint = ""}) {
    super(error);
    this.status = status;
    this.hint = hint;
  }
}

export const get = (path, options) => ask("GET", path, undefined, options);
export const post = (path, body, options) => ask("POST", path, body, options);

async function ask(method, path, body, {signal} = {}) {
  const headers = {"X-Regard": "studio"}; // no other origin can send it without asking first
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body)});
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Problem(0, {error: "the service does not answer; is `regard studio` still running?"});
  }
  if (!answer.ok) throw new Problem(answer.status, await reason(answer));
  return answer.json();
}

async function reason(answer) {
  try {
    return await answer.json();
  } catch {
    return {error: `the service answered ${answer.status}`};
  }
}
