// Why an act was refused, and what to do about it, beside the form that sent it.

import type { Failure } from "../api";
import { otherFaults } from "./act";

export function FailureNote({ error, fields = [] }: { error: Failure | null; fields?: string[] }) {
  if (!error) return null;
  const faults = otherFaults(error, fields);
  // The faults of fields stand beside the fields; the API's own words name the request's body.
  const all = Array.isArray(error.details?.issues) ? error.details.issues.length : 0;
  if (error.status === 400 && all > 0) {
    return (
      <div class="notice notice-error" role="alert">
        {all > faults.length && <p>Correct what is marked above, then try again.</p>}
        {faults.map((fault) => (
          <p key={fault}>{fault}</p>
        ))}
      </div>
    );
  }
  return (
    <div class="notice notice-error" role="alert">
      <p>
        <strong>{error.message}</strong> {error.hint}
        {error.status === 429 && error.retryAfter !== null && ` Wait ${Math.ceil(error.retryAfter)} s.`}
      </p>
      {faults.map((fault) => (
        <p key={fault}>{fault}</p>
      ))}
    </div>
  );
}
