// The changes of the cluster since the page was opened.

import { Section, Sparkline, Time } from "../../ui";
import { formatCount } from "../agents/session_text";
import type { ClusterChange, ClusterHistory } from "./cluster_history";

function text(change: ClusterChange): string {
  if (change.kind === "node") return `Node ${change.node}: ${change.from}, now ${change.to}`;
  const shard = `Shard ${change.shard}, term ${change.term}`;
  if (change.to === "") return `${shard}: ${change.from} no longer leads, and there is no leader yet`;
  if (change.from === change.to) return `${shard}: ${change.to} leads again`;
  return `${shard}: ${change.to} leads${change.from ? ` after ${change.from}` : ""}`;
}

export function ClusterChanges({ history }: { history: ClusterHistory }) {
  const last = history.samples[history.samples.length - 1];
  return (
    <Section title="Since this page was opened">
      <dl class="stats">
        <div class="stat">
          <dt>Entries a second</dt>
          <dd>
            <span class="stat-value">{formatCount(Math.round(last?.rate ?? 0))}</span>
            <Sparkline values={history.samples.map((s) => s.rate)} label="Entries a second in the last minutes" />
          </dd>
        </div>
        <div class="stat">
          <dt>Longest lag</dt>
          <dd>
            <span class="stat-value">{formatCount(last?.lag ?? 0)}</span>
            <Sparkline values={history.samples.map((s) => s.lag)} label="Longest lag in the last minutes" />
          </dd>
        </div>
      </dl>
      <h3>Fail-overs and changes of nodes</h3>
      <div role="log" aria-label="Fail-overs and changes of nodes" class="changes" tabIndex={0}>
        {history.changes.length === 0 ? (
          <p class="muted">None so far.</p>
        ) : (
          <ul class="plain-list">
            {history.changes.map((change) => (
              <li key={`${change.at} ${text(change)}`}>
                <Time at={new Date(change.at).toISOString()} /> {text(change)}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Section>
  );
}
