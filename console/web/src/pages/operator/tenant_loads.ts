// The load of the tenants: the size of each workspace, and how fast it grows.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { api, asFailure, type Failure } from "../../api";
import type { LimitsAndUsage, WorkspaceOwner, WorkspaceRecord } from "../../types_admin";
import { useEvery } from "../refresh";

export interface TenantLoad {
  limits: LimitsAndUsage;
  shard: number;
  /** The time of the look, in milliseconds. */
  at: number;
  /** The growth of the records in a second since the look before; null after the first. */
  bytesPerSecond: number | null;
}

/** So many requests are under way at a time. */
const atOnce = 4;

/** So many workspaces are read again by the clock: those that hold the most. */
const followed = 50;
const readEvery = 15_000;

export interface TenantLoads {
  loads: Map<string, TenantLoad>;
  error: Failure | null;
  reload(id: string): void;
}

export function useTenantLoads(workspaces: WorkspaceRecord[]): TenantLoads {
  const [loads, setLoads] = useState<Map<string, TenantLoad>>(() => new Map());
  const [error, setError] = useState<Failure | null>(null);
  const state = useRef({ loads, waiting: [] as string[], busy: new Set<string>(), control: new AbortController() });
  state.current.loads = loads;

  const next = useCallback(() => {
    const s = state.current;
    while (s.busy.size < atOnce) {
      const id = s.waiting.shift();
      if (id === undefined) return;
      s.busy.add(id);
      void read(id, s.loads.get(id), s.control.signal)
        .then((load) => {
          if (s.control.signal.aborted) return;
          setLoads((now) => new Map(now).set(id, load));
          setError(null);
        })
        .catch((thrown: unknown) => {
          // A workspace that was deleted meanwhile has no load.
          const failure = asFailure(thrown);
          if (!s.control.signal.aborted && failure.status !== 404) setError(failure);
        })
        .finally(() => {
          s.busy.delete(id);
          if (!s.control.signal.aborted) next();
        });
    }
  }, []);

  const ask = useCallback(
    (ids: string[]) => {
      const s = state.current;
      for (const id of ids) if (!s.busy.has(id) && !s.waiting.includes(id)) s.waiting.push(id);
      next();
    },
    [next],
  );

  useEffect(() => {
    state.current.control = new AbortController();
    const control = state.current.control;
    return () => {
      control.abort();
      state.current.waiting = [];
    };
  }, []);

  const ids = workspaces.map((w) => w.id).join(" ");
  useEffect(() => {
    ask(workspaces.map((w) => w.id).filter((id) => !state.current.loads.has(id)));
  }, [ids, ask]);

  useEvery(() => {
    const known = workspaces.filter((w) => loads.has(w.id));
    known.sort((a, b) => loads.get(b.id)!.limits.used.bytes - loads.get(a.id)!.limits.used.bytes);
    ask(known.slice(0, followed).map((w) => w.id));
  }, readEvery);

  const reload = useCallback((id: string) => ask([id]), [ask]);
  return { loads, error, reload };
}

async function read(id: string, before: TenantLoad | undefined, signal: AbortSignal): Promise<TenantLoad> {
  const limits = await api.get<LimitsAndUsage>(`/cluster/workspaces/${id}/limits`, undefined, signal);
  const at = Date.now();
  // The shard of a workspace never changes.
  const shard = before?.shard ?? (await api.get<WorkspaceOwner>(`/cluster/workspaces/${id}`, undefined, signal)).shard;
  const seconds = before ? (at - before.at) / 1000 : 0;
  const grown = before ? limits.used.bytes - before.limits.used.bytes : 0;
  return { limits, shard, at, bytesPerSecond: seconds > 0 ? Math.max(0, grown / seconds) : null };
}
