// The sessions that wait for an answer of a person. The API has no list of them: they are found
// among the sessions that wait or run.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, type Failure, isAbort } from "../../api";
import { useEvents, useReset } from "../../live";
import { wsPath } from "../../workspace";
import type { SessionPage, SessionRow } from "../../types_agents";
import { useEvery, useThrottled } from "../refresh";
import { needsAnswer } from "./session_text";

/** So many pages of 100 sessions are looked at, of each status. */
const mostPages = 10;

export interface Questions {
  /** The oldest question first. */
  sessions: SessionRow[];
  /** Is set if there are more sessions than were looked at. */
  partial: boolean;
  loading: boolean;
  error: Failure | null;
  reload(): void;
}

async function walk(status: string, signal: AbortSignal): Promise<{ found: SessionRow[]; partial: boolean }> {
  const found: SessionRow[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const answer: SessionPage = await api.get<SessionPage>(wsPath("/agent/sessions"), { summary: 1, status, limit: 100, cursor }, signal);
    found.push(...answer.sessions.filter(needsAnswer));
    cursor = answer.nextCursor;
    if (!cursor) return { found, partial: false };
  }
  return { found, partial: true };
}

export function useQuestions(): Questions {
  const [state, setState] = useState({ sessions: [] as SessionRow[], partial: false, loading: true, error: null as Failure | null });
  const running = useRef<AbortController | null>(null);

  const load = useCallback(() => {
    running.current?.abort();
    const control = new AbortController();
    running.current = control;
    Promise.all([walk("waiting", control.signal), walk("running", control.signal)]).then(
      ([waiting, working]) => {
        if (control.signal.aborted) return;
        const sessions = [...waiting.found, ...working.found];
        sessions.sort((a, b) => (a.lastProgressAt ?? a.createdAt).localeCompare(b.lastProgressAt ?? b.createdAt));
        setState({ sessions, partial: waiting.partial || working.partial, loading: false, error: null });
      },
      (error: unknown) => {
        if (!control.signal.aborted && !isAbort(error)) setState((s) => ({ ...s, loading: false, error: asFailure(error) }));
      },
    );
  }, []);

  useEffect(() => {
    load();
    return () => running.current?.abort();
  }, [load]);
  useReset(load);
  const soon = useThrottled(load, 3000);
  useEvents(["session.*"], soon);
  useEvery(load, 60_000);
  return { ...state, reload: load };
}
