// The browser's session: signing in and out, and the end of a session during work.

import { consoleHeader, Failure, onExpired } from "./api";
import { makeStore, useStore } from "./store";

export interface SessionWorkspace {
  id: string;
  slug: string;
  name: string;
}

export interface Session {
  kind: "member" | "root";
  actorId: string;
  actorType: "user" | "agent" | null;
  name: string | null;
  email: string | null;
  role: string | null;
  permissions: string;
  workspaces: SessionWorkspace[];
  expiresAt: string;
  signIn: { oidc: boolean };
}

/** undefined: not known yet. null: nobody is signed in. */
const session = makeStore<Session | null | undefined>(undefined);
const expired = makeStore(false);
const oidc = makeStore(false);
const unreachable = makeStore<Failure | null>(null);

export const useSession = (): Session | null | undefined => useStore(session);
export const useExpired = (): boolean => useStore(expired);
export const useOidc = (): boolean => useStore(oidc);
/** The failure that keeps the session from being read, if there is one. */
export const useUnreachable = (): Failure | null => useStore(unreachable);
export const currentSession = (): Session | null | undefined => session.get();

let waiting: (() => void)[] = [];

async function answerOf(method: string, path: string, body?: unknown): Promise<Response> {
  const headers: Record<string, string> = { ...consoleHeader, Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Failure(0, "NETWORK", "The server did not answer.", "Check the connection, then try again.");
  }
}

async function failure(answer: Response): Promise<Failure> {
  const body = await answer.json().catch(() => null);
  const after = Number(answer.headers.get("Retry-After"));
  return new Failure(
    answer.status,
    body?.code ?? "",
    body?.message ?? `The server answered with status ${answer.status}.`,
    body?.hint ?? "Try again in a moment.",
    body?.details,
    after > 0 ? after : null,
  );
}

function began(next: Session): void {
  const before = session.get();
  oidc.set(Boolean(next.signIn?.oidc));
  unreachable.set(null);
  session.set(next);
  // The pages and unsent texts of one person are not shown to another.
  if (expired.get() && before && before.actorId !== next.actorId) {
    sessionStorage.clear();
    location.assign("/console/");
    return;
  }
  expired.set(false);
  const resume = waiting;
  waiting = [];
  for (const go of resume) go();
}

/** Reads the session from the service. */
export async function loadSession(): Promise<void> {
  try {
    const answer = await answerOf("GET", "/console/session");
    if (answer.ok) {
      began(await answer.json());
      return;
    }
    const why = await failure(answer);
    if (answer.status !== 401) throw why;
    oidc.set(Boolean(why.details?.signIn?.oidc));
    unreachable.set(null);
    if (!expired.get()) session.set(null);
  } catch (error) {
    unreachable.set(error instanceof Failure ? error : new Failure(0, "CLIENT", "The session could not be read.", "Reload the page."));
  }
}

/** Opens a session with a pasted token. It throws a Failure. */
export async function signIn(token: string): Promise<void> {
  const answer = await answerOf("POST", "/console/session", { token: token.trim() });
  if (!answer.ok) throw await failure(answer);
  began(await answer.json());
}

/** The address that begins a sign-in with the identity provider. */
export function signInAddress(to: string): string {
  return "/console/sign-in?to=" + encodeURIComponent(to);
}

/** Ends this session, or all console sessions of the person. It throws a Failure. */
export async function signOut(everywhere = false): Promise<void> {
  const answer = await answerOf("DELETE", "/console/session" + (everywhere ? "?everywhere=true" : ""));
  if (!answer.ok && answer.status !== 401) throw await failure(answer);
  sessionStorage.clear();
  location.assign("/console/");
}

/** Asks for a new sign-in over the page, and waits for it. */
export function waitForSession(signal?: AbortSignal): Promise<void> {
  if (session.get() === null) return Promise.reject(new Failure(401, "UNAUTHORIZED", "Nobody is signed in.", "Sign in."));
  expired.set(true);
  return new Promise((resolve, reject) => {
    const go = () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    };
    const stop = () => {
      waiting = waiting.filter((other) => other !== go);
      reject(signal!.reason);
    };
    waiting.push(go);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

onExpired(waitForSession);
