// The activities of a session, followed live. The event of a session says that something was
// logged; a poll then brings what is new.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, type Failure } from "../../api";
import { useConnection, useEvents } from "../../live";
import { wsPath } from "../../workspace";
import type { Activity, ActivityPage, LaneBudget, PolledSession } from "../../types_agents";

/** The service keeps so many activities of a session. */
export const maxActivities = 10_000;

/** A poll shows so many activities at most. */
const shownByPoll = 500;

export interface SessionLog {
  activities: Activity[];
  budget: LaneBudget | null;
  /** Is set if there are activities before the first one shown. */
  hasEarlier: boolean;
  loading: boolean;
  error: Failure | null;
  loadEarlier(): Promise<void>;
  refresh(): void;
}

/** Appends the activities that are not there yet. Ids sort by the time of their creation. */
function append(known: Activity[], more: Activity[]): Activity[] {
  const last = known.length > 0 ? known[known.length - 1]!.id : "";
  const fresh = more.filter((a) => a.id > last);
  if (fresh.length === 0) return known;
  const all = [...known, ...fresh];
  return all.length > maxActivities ? all.slice(all.length - maxActivities) : all;
}

export function useSessionLog(sessionId: string): SessionLog {
  const [activities, setActivities] = useState<Activity[]>([]);
  const [budget, setBudget] = useState<LaneBudget | null>(null);
  const [hasEarlier, setHasEarlier] = useState(false);
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState<Failure | null>(null);
  const live = useConnection();
  // A ref holds what the running requests need, because they outlive a render.
  const state = useRef({ last: "", running: false, again: false, session: "", abort: new AbortController() });

  const refresh = useCallback(() => {
    const s = state.current;
    if (s.running) {
      s.again = true;
      return;
    }
    s.running = true;
    const session = s.session;
    const signal = s.abort.signal;
    const since = s.last ? `?since=${encodeURIComponent(s.last)}` : "";
    const path = wsPath(`/agent/sessions/${session}/poll${since}`);
    api
      .send<PolledSession>("POST", path, undefined, { signal })
      .then(({ data }) => {
        if (state.current.session !== session) return;
        const first = s.last === "";
        const newest = data.activities[data.activities.length - 1];
        if (newest) s.last = newest.id;
        setActivities((known) => append(first ? [] : known, data.activities));
        setBudget(data.budget);
        if (first) setHasEarlier(data.activities.length >= shownByPoll);
        // An answer that is full has not shown all.
        if (!first && data.activities.length >= shownByPoll) s.again = true;
        setError(null);
      })
      .catch((err: unknown) => {
        if (!signal.aborted) setError(asFailure(err));
      })
      .finally(() => {
        if (state.current.session !== session) return;
        s.running = false;
        setLoading(false);
        if (s.again) {
          s.again = false;
          refresh();
        }
      });
  }, []);

  useEffect(() => {
    const abort = new AbortController();
    state.current = { last: "", running: false, again: false, session: sessionId, abort };
    setActivities([]);
    setLoading(true);
    setHasEarlier(false);
    refresh();
    return () => abort.abort();
  }, [sessionId, refresh]);

  useEvents(
    (type) => type.startsWith("session."),
    (event) => {
      if ((event.data as { id?: string } | null)?.id === sessionId) refresh();
    },
  );
  // The stream resumes where it stopped, but the poll is the shorter way to what was missed.
  useEffect(() => {
    if (live === "live") refresh();
  }, [live, refresh]);

  const loadEarlier = useCallback(async () => {
    const s = state.current;
    const all: Activity[] = [];
    let cursor: string | undefined;
    do {
      const page = await api.get<ActivityPage>(wsPath(`/agent/sessions/${s.session}/activities`), { limit: 100, cursor }, s.abort.signal);
      all.push(...page.activities);
      cursor = page.nextCursor;
    } while (cursor && all.length < maxActivities);
    setActivities((known) => append(all, known));
    setHasEarlier(false);
  }, []);

  return { activities, budget, hasEarlier, loading, error, loadEarlier, refresh };
}
