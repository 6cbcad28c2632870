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
export const remove = (path, options) => ask("DELETE", path, undefined, options);

/** A file or a text as it is. */
export const put = (path, body, options) => send("PUT", path, {body, ...options});

/**
 * Only the newest question counts: `const ask = latest()`, then `await ask((signal) => post(path, body, {signal}))`
 * stops the one before it. What was stopped answers undefined.
 */
export function latest() {
  let running = new AbortController();
  const question = async (work) => {
    running.abort();
    const mine = (running = new AbortController());
    try {
      const answer = await work(mine.signal);
      return mine.signal.aborted ? undefined : answer;
    } catch (problem) {
      if (mine.signal.aborted) return undefined;
      throw problem;
    }
  };
  question.stop = () => running.abort();
  return question;
}

function ask(method, path, body, {signal} = {}) {
  if (body === undefined) return send(method, path, {signal});
  return send(method, path, {signal, body: JSON.stringify(body), headers: {"Content-Type": "application/json"}});
}

async function send(method, path, {headers = {}, ...options} = {}) {
  let answer;
  try {
    // The header is one that no other origin can send without asking first.
    answer = await fetch(path, {method, headers: {"X-Regard": "studio", ...headers}, ...options});
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    throw new Problem(0, {error: "the service does not answer; is `regard studio` still running?"});
  }
  if (!answer.ok) throw new Problem(answer.status, await reason(answer));
  return answer.status === 204 ? undefined : answer.json();
}

async function reason(answer) {
  try {
    return await answer.json();
  } catch {
    return {error: `the service answered ${answer.status}`};
  }
}
