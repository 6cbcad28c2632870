// The service, as functions. A problem is thrown as an Error whose message is the service's own line.

export class Problem extends Error {
  constructor(status, {error, hint = ""}) {
    super(error);
    this.status = status;
    this.hint = hint;
  }
}

/** @type {(path: string, options?: Options) => Promise<any>} */
export const get = (path, options) => ask("GET", path, undefined, options);
/** @type {(path: string, body?: any, options?: Options) => Promise<any>} */
export const post = (path, body, options) => ask("POST", path, body, options);
/** @type {(path: string, options?: Options) => Promise<any>} */
export const remove = (path, options) => ask("DELETE", path, undefined, {lasting: true, ...options});

/**
 * A file or a text as it is.
 * @type {(path: string, body: BodyInit, options?: Options & RequestInit) => Promise<any>}
 */
export const put = (path, body, options) => send("PUT", path, {body, lasting: true, ...options});

let visit = new AbortController();

/**
 * The page is left: what it asked for is stopped and never answers, so that nothing of it goes on. What changes
 * something (`put`, `remove`, and `post` with `{lasting: true}`) is carried out all the same.
 */
export function leaveRequests() {
  visit.abort();
  visit = new AbortController();
}

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

/**
 * @typedef {{signal?: AbortSignal, lasting?: boolean}} Options  `lasting`: carried out even if the page is left
 * @param {string} method  @param {string} path  @param {any} [body]  @param {Options} [options]
 */
function ask(method, path, body, {signal, lasting} = {}) {
  if (body === undefined) return send(method, path, {signal, lasting});
  const headers = {"Content-Type": "application/json"};
  return send(method, path, {signal, lasting, body: JSON.stringify(body), headers});
}

/** @param {string} method  @param {string} path  @param {Options & RequestInit} [options] */
async function send(method, path, {headers = {}, signal, lasting = false, ...options} = {}) {
  const mine = visit.signal;
  const stops = [signal, lasting ? null : mine].filter((each) => each != null);
  // The header is one that no other origin can send without asking first.
  const about = {method, headers: {"X-Regard": "studio", ...headers}, ...options};
  try {
    const answer = await asked(path, {...about, ...(stops.length ? {signal: AbortSignal.any(stops)} : {})});
    return mine.aborted ? await never() : answer;
  } catch (problem) {
    if (mine.aborted) return never();
    throw problem;
  }
}

const never = () => new Promise(() => {});

async function asked(path, about) {
  let answer;
  try {
    answer = await fetch(path, about);
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
