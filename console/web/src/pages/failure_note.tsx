// Why an act was refused, and what to do about it, beside the form that sent it.

import type { Failure } from "../api";
import { otherFaults } from "./act";

export function FailureNote({ error, fields = [] }: { error: Failure | null; fields?: string[] }) {
  if (!error) return null;
  const faults = otherFaults(error, fields);
  return (
    <div class="notice notice-error" role="alert">
      <p>
        <strong>{error.message}</strong> {error.hint}
        {error.status === 429 && error.retryAfter !== null && ` Wait ${Math.ceil(error.retryAfter)} s.`}
      </p>
      {faults.length > 0 && (
        <ul>
          {faults.map((fault) => (
            <li key={fault}>{fault}</li>
          ))}
        </ul>
      )}
    </div>
  );
}
