// The event stream of the current workspace: one per tab, resumed after each loss.
//
// EventSource can't send the console's header, so the stream is read with fetch.

import { useEffect, useRef } from "preact/hooks";
import { consoleHeader } from "./api";
import { waitForSession } from "./session";
import { makeStore, useStore } from "./store";

export interface LiveEvent {
  id: string;
  type: string;
  sequence: number;
  organizationId: string;
  createdAt: string;
  actor: { id: string; type: "user" | "agent" | "system" };
  data: any;
  changes?: Record<string, { from: any; to: any }>;
}

export type Connection = "live" | "connecting" | "lost";

type Interest = string[] | ((type: string) => boolean);

/** The server writes at least each 15 seconds; a stream silent for longer is dead. */
const silence = 40_000;
const longestPause = 15_000;
/**
 * A browser opens six connections to a server, for all its tabs. So a tab that nobody sees
 * for so long, or that is kept only for the button "back", gives its stream up, and goes on
 * after the last event when it is seen again.
 */
const unseen = 60_000;
/** A connection that is away for longer is reported as lost. */
const lostAfter = 4_000;

const connection = makeStore<Connection>("connecting");
const handlers = new Set<{ wants: Interest; handle: (event: LiveEvent) => void }>();
const resets = new Set<() => void>();

export const useConnection = (): Connection => useStore(connection);

function wanted(wants: Interest, type: string): boolean {
  if (typeof wants === "function") return wants(type);
  return wants.some((want) => want === "*" || want === type || (want.endsWith(".*") && type.startsWith(want.slice(0, -1))));
}

/** Calls the handler for each event of the types: "issue.created", families such as "issue.*", or "*". */
export function useEvents(wants: Interest, handler: (event: LiveEvent) => void): void {
  const latest = useRef({ wants, handler });
  latest.current = { wants, handler };
  useEffect(() => {
    const entry = {
      wants: (type: string) => wanted(latest.current.wants, type),
      handle: (event: LiveEvent) => latest.current.handler(event),
    };
    handlers.add(entry);
    return () => {
      handlers.delete(entry);
    };
  }, []);
}

/** Calls the function when events may have been missed, so everything shown must be read again. */
export function useReset(reload: () => void): void {
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    const call = () => latest.current();
    resets.add(call);
    return () => {
      resets.delete(call);
    };
  }, []);
}

function deliver(event: LiveEvent): void {
  for (const entry of [...handlers]) {
    if (!wanted(entry.wants, event.type)) continue;
    try {
      entry.handle(event);
    } catch (error) {
      console.error("handle " + event.type, error);
    }
  }
}

function reset(): void {
  for (const call of [...resets]) call();
}

/** Splits the stream's text into blocks. The incomplete end is kept for the next part. */
class Blocks {
  private rest = "";

  push(text: string, each: (fields: { id?: string; event?: string; data?: string }) => void): void {
    this.rest += text;
    for (;;) {
      const end = this.rest.indexOf("\n\n");
      if (end < 0) return;
      const block = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + 2);
      const fields: { id?: string; event?: string; data?: string } = {};
      for (const line of block.split("\n")) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue;
        const name = line.slice(0, colon);
        const value = line.slice(colon + 1).replace(/^ /, "");
        if (name === "id") fields.id = value;
        else if (name === "event") fields.event = value;
        else if (name === "data") fields.data = fields.data === undefined ? value : fields.data + "\n" + value;
      }
      each(fields);
    }
  }
}

let asleep = false;
let sleepTimer: ReturnType<typeof setTimeout> | undefined;
let wakeUp: (() => void)[] = [];
let running: AbortController | null = null;

function sleep(): void {
  asleep = true;
  running?.abort();
}

function wake(): void {
  clearTimeout(sleepTimer);
  asleep = false;
  const all = wakeUp;
  wakeUp = [];
  for (const go of all) go();
}

// Without a network the stream is silent for long before it breaks.
addEventListener("offline", () => running?.abort());
addEventListener("pagehide", sleep);
addEventListener("pageshow", wake);
document.addEventListener("visibilitychange", () => {
  clearTimeout(sleepTimer);
  if (document.visibilityState === "visible") wake();
  else sleepTimer = setTimeout(sleep, unseen);
});

/** Waits until the tab is seen, or the stream is given up. */
function awake(stop: AbortSignal): Promise<void> {
  if (!asleep) return Promise.resolve();
  return new Promise((resolve) => {
    wakeUp.push(resolve);
    stop.addEventListener("abort", () => resolve(), { once: true });
  });
}

let current: { workspace: string; control: AbortController } | null = null;

/** Follows a workspace until another is followed, or none. */
export function follow(workspace: string | null): void {
  if (current?.workspace === workspace) return;
  current?.control.abort();
  current = null;
  if (workspace === null) return;
  const control = new AbortController();
  current = { workspace, control };
  connection.set("connecting");
  void run(workspace, control.signal);
}

async function run(workspace: string, stop: AbortSignal): Promise<void> {
  let last: string | null = null;
  let failures = 0;
  let away: ReturnType<typeof setTimeout> | undefined;
  const gone = () => {
    if (stop.aborted || away !== undefined) return;
    if (connection.get() === "live") connection.set("connecting");
    away = setTimeout(() => connection.set("lost"), lostAfter);
  };
  const back = () => {
    clearTimeout(away);
    away = undefined;
    failures = 0;
    connection.set("live");
  };
  stop.addEventListener("abort", () => clearTimeout(away), { once: true });
  while (!stop.aborted) {
    await awake(stop);
    if (stop.aborted) return;
    gone();
    const attempt = new AbortController();
    running = attempt;
    const forward = () => attempt.abort();
    stop.addEventListener("abort", forward, { once: true });
    try {
      const status: number = await read(workspace, last, attempt, (id) => (last = id), back);
      if (status === 401) await waitForSession(stop);
      else if (status === 400 && last !== null) {
        // The events after this one are no longer kept.
        last = null;
        reset();
      } else if (status === 403 || status === 404) {
        clearTimeout(away);
        connection.set("lost");
        return;
      }
    } catch {
      // No answer, or the stream broke: the next turn continues after the last event.
    } finally {
      stop.removeEventListener("abort", forward);
      attempt.abort();
    }
    if (stop.aborted) return;
    if (asleep) {
      clearTimeout(away);
      away = undefined;
      continue;
    }
    failures++;
    gone();
    await nap(Math.min(longestPause, 250 * 2 ** Math.min(failures - 1, 6)) * (0.75 + Math.random() / 2), stop);
  }
}

/** Reads one stream to its end and returns the status of the answer. */
async function read(workspace: string, last: string | null, attempt: AbortController, seen: (id: string) => void, open: () => void): Promise<number> {
  const headers: Record<string, string> = { ...consoleHeader, Accept: "text/event-stream" };
  if (last !== null) headers["Last-Event-ID"] = last;
  let alarm = setTimeout(() => attempt.abort(), silence);
  try {
    const answer = await fetch(`/workspaces/${workspace}/events`, { headers, credentials: "same-origin", cache: "no-store", signal: attempt.signal });
    if (!answer.ok || !answer.body) return answer.status;
    open();
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    const blocks = new Blocks();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 200;
      clearTimeout(alarm);
      alarm = setTimeout(() => attempt.abort(), silence);
      blocks.push(decoder.decode(value, { stream: true }), (fields) => {
        if (fields.data !== undefined) {
          try {
            deliver(JSON.parse(fields.data) as LiveEvent);
          } catch (error) {
            console.error("read an event", error);
          }
        }
        if (fields.id !== undefined) seen(fields.id);
      });
    }
  } finally {
    clearTimeout(alarm);
  }
}

/** Waits, but not longer than until the browser is online again. */
function nap(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      stop.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    addEventListener("online", wake);
    stop.addEventListener("abort", wake);
  });
}
