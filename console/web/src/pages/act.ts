// Acts of a person that change something through the API.

import { useCallback, useRef, useState } from "preact/hooks";
import { asFailure, type Failure, isAbort, newKey } from "../api";

export interface Act {
  busy: boolean;
  error: Failure | null;
  /**
   * Runs an act and returns whether it succeeded. key is the Idempotency-Key: it stays the same
   * while the same act is tried again, so that it has its effect once. what is the act's text
   * form; another text is another act.
   */
  run(what: unknown, act: (key: string) => Promise<unknown>): Promise<boolean>;
  clear(): void;
}

export function useAct(): Act {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Failure | null>(null);
  const state = useRef({ busy: false, key: "", what: "" });

  const run = useCallback(async (what: unknown, act: (key: string) => Promise<unknown>): Promise<boolean> => {
    const s = state.current;
    if (s.busy) return false;
    const text = JSON.stringify(what);
    if (s.key === "" || s.what !== text) Object.assign(s, { key: newKey(), what: text });
    s.busy = true;
    setBusy(true);
    setError(null);
    try {
      await act(s.key);
      s.key = "";
      return true;
    } catch (thrown) {
      if (!isAbort(thrown)) setError(asFailure(thrown));
      return false;
    } finally {
      s.busy = false;
      setBusy(false);
    }
  }, []);

  const clear = useCallback(() => setError(null), []);
  return { busy, error, run, clear };
}

/** Returns the fault that the service found in a field, such as "events[1]". */
export function faultOf(error: Failure | null, field: string): string | undefined {
  const issues = error?.details?.issues;
  if (!Array.isArray(issues)) return undefined;
  const found = issues.find(({ path }: { path?: string }) => path === field || path?.startsWith(field + "[") || path?.startsWith(field + "."));
  return found?.message;
}

/** Returns the faults that are in none of the fields that a form shows. */
export function otherFaults(error: Failure | null, fields: string[]): string[] {
  const issues = error?.details?.issues;
  if (!Array.isArray(issues)) return [];
  return issues
    .filter(({ path }: { path?: string }) => !fields.some((f) => path === f || path?.startsWith(f + "[") || path?.startsWith(f + ".")))
    .map(({ path, message }: { path?: string; message?: string }) => (path ? `${path}: ${message}` : (message ?? "")));
}
