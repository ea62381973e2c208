// The flow of the queue in the last minutes: how many sessions came, began and ended.

import { useEffect, useState } from "preact/hooks";
import { useEvents } from "../../live";
import type { AgentSession } from "../../types_agents";
import { LineChart, Section } from "../../ui";

const bucketSeconds = 10;
const buckets = 30;

interface Bucket {
  /** The number of the ten seconds since 1970. */
  at: number;
  queued: number;
  begun: number;
  ended: number;
}

function bucketOf(ms: number): number {
  return Math.floor(ms / (bucketSeconds * 1000));
}

/** Returns the last buckets up to now, with empty ones for quiet times. */
function upTo(known: Bucket[], now: number): Bucket[] {
  const byTime = new Map(known.map((b) => [b.at, b]));
  const all: Bucket[] = [];
  for (let at = now - buckets + 1; at <= now; at++) all.push(byTime.get(at) ?? { at, queued: 0, begun: 0, ended: 0 });
  return all;
}

export function QueueFlow() {
  const [flow, setFlow] = useState<Bucket[]>(() => upTo([], bucketOf(Date.now())));

  useEffect(() => {
    const timer = setInterval(() => setFlow((known) => upTo(known, bucketOf(Date.now()))), bucketSeconds * 1000);
    return () => clearInterval(timer);
  }, []);

  useEvents(["session.created", "session.updated", "session.ended"], (event) => {
    const to = event.changes?.status?.to as AgentSession["status"] | undefined;
    const field =
      event.type === "session.ended" ? "ended" : event.type === "session.created" || to === "created" ? "queued" : to === "running" ? "begun" : null;
    if (!field) return;
    const now = bucketOf(Date.now());
    setFlow((known) => upTo(known, now).map((b) => (b.at === now ? { ...b, [field]: b[field] + 1 } : b)));
  });

  const last = flow[flow.length - 1]!.at;
  const words = flow.map((b) => (b.at === last ? "now" : `-${(last - b.at) * bucketSeconds} s`));
  return (
    <Section title="Flow of the last five minutes">
      <LineChart
        label="Sessions in ten seconds"
        at={words}
        height={160}
        lines={[
          { name: "Queued", values: flow.map((b) => b.queued) },
          { name: "Begun", values: flow.map((b) => b.begun) },
          { name: "Ended", values: flow.map((b) => b.ended) },
        ]}
      />
    </Section>
  );
}
