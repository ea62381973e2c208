// Requests to the public API, with the console's session cookie.
//
// A read is repeated by itself while the node is starting or its shard is moving (503, or
// no answer). So is a write: all its tries carry one Idempotency-Key, so it has its effect
// once. A 401 waits until the person has signed in again, and then goes on.

export type Query = Record<string, string | number | boolean | string[] | undefined | null>;

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** An answer outside 2xx, or none at all (status 0, code NETWORK). */
export class Failure extends Error {
  constructor(
    public status: number,
    public code: string,
    message: string,
    public hint: string,
    public details: any = undefined,
    public retryAfter: number | null = null,
  ) {
    super(message);
    this.name = "Failure";
  }
}

export interface SendOptions {
  ifMatch?: string | null;
  /** The Idempotency-Key. A new one is made where it is absent. */
  key?: string;
  signal?: AbortSignal;
}

/** The header without which the service ignores the session cookie. */
export const consoleHeader = { "X-Switchyard-Console": "1" };

const tries = 4;
const longestPause = 3;

/** Waits for a new session after a 401. session.ts sets it. */
let renewSession: (signal?: AbortSignal) => Promise<void> = () => Promise.reject(new Error("no session"));

export function onExpired(renew: (signal?: AbortSignal) => Promise<void>): void {
  renewSession = renew;
}

export function queryString(query?: Query): string {
  if (!query) return "";
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) {
      if (value.length > 0) out.set(name, value.join(","));
    } else {
      out.set(name, String(value));
    }
  }
  const text = out.toString();
  return text === "" ? "" : "?" + text;
}

export function newKey(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  // Pages that are served without TLS from another machine have no randomUUID.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, seconds * 1000);
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Reads the error shape of the API; other texts, as of a proxy, get words of our own. */
async function failureOf(answer: Response): Promise<Failure> {
  const after = Number(answer.headers.get("Retry-After"));
  const retryAfter = Number.isFinite(after) && after > 0 ? after : null;
  let body: any = null;
  try {
    body = await answer.json();
  } catch {
    body = null;
  }
  if (body && typeof body.message === "string") {
    return new Failure(answer.status, body.code ?? "", body.message, body.hint ?? "", body.details, retryAfter);
  }
  return new Failure(answer.status, "", `The server answered with status ${answer.status}.`, "Try again in a moment.", undefined, retryAfter);
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

async function once(method: Method, path: string, body: string | undefined, headers: Record<string, string>, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { method, body, headers, signal, credentials: "same-origin", cache: "no-cache", redirect: "error" });
  } catch (error) {
    if (isAbort(error) || signal?.aborted) throw error;
    throw new Failure(0, "NETWORK", "The server did not answer.", "Check the connection, then try again. Nothing you typed is lost.");
  }
  if (!answer.ok) throw await failureOf(answer);
  return answer;
}

async function request(method: Method, path: string, body: unknown, opts: SendOptions): Promise<Response> {
  const headers: Record<string, string> = { ...consoleHeader, Accept: "application/json" };
  const text = body === undefined ? undefined : JSON.stringify(body);
  if (text !== undefined) headers["Content-Type"] = "application/json";
  if (opts.ifMatch) headers["If-Match"] = opts.ifMatch;
  if (method !== "GET") headers["Idempotency-Key"] = opts.key ?? newKey();
  let signIns = 0;
  for (let attempt = 1; ; ) {
    try {
      return await once(method, path, text, headers, opts.signal);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (error.status === 401 && signIns < 3) {
        signIns++;
        await renewSession(opts.signal);
        continue;
      }
      const transient = error.status === 503 || error.status === 0;
      const wait = Math.max(error.retryAfter ?? 0, 0.3 * 2 ** (attempt - 1)) * (1 + Math.random() / 4);
      if (!transient || attempt >= tries || wait > longestPause) throw error;
      attempt++;
      await pause(wait, opts.signal);
    }
  }
}

async function dataOf<T>(answer: Response): Promise<{ data: T; etag: string | null }> {
  const etag = answer.headers.get("ETag");
  if (answer.status === 204) return { data: undefined as T, etag };
  const text = await answer.text();
  return { data: (text === "" ? undefined : JSON.parse(text)) as T, etag };
}

export const api = {
  async get<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
    return (await api.read<T>(path, query, signal)).data;
  },
  async read<T>(path: string, query?: Query, signal?: AbortSignal): Promise<{ data: T; etag: string | null }> {
    return dataOf<T>(await request("GET", path + queryString(query), undefined, { signal }));
  },
  async send<T>(method: Exclude<Method, "GET">, path: string, body?: unknown, opts: SendOptions = {}): Promise<{ data: T; etag: string | null }> {
    return dataOf<T>(await request(method, path, body, opts));
  },
};

/** Turns anything thrown into a Failure that can be shown. */
export function asFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new Failure(0, "CLIENT", "The console could not do this: " + text, "Reload the page and try again.");
}

export { isAbort };
export { useRead, usePages } from "./reads";
