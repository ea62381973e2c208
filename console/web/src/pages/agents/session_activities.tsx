// The log of a session: what its agent thinks, does and asks, and what people reply.

import { useEffect, useRef, useState } from "preact/hooks";
import { useNames } from "../../workspace";
import type { Activity } from "../../types_agents";
import { Button, Checkbox, Markdown, Section, Time } from "../../ui";
import { memo } from "../../ui/memo";
import { FailureNote } from "../failure_note";
import type { SessionLog } from "./session_log";
import { activityTitle, formatDuration, prettyJSON } from "./session_text";

/** The log follows its end while the reader is this close to it, in pixels. */
const nearEnd = 48;

/** Texts of these types are written for people and may have Markdown. */
const prose = new Set<Activity["type"]>(["elicitation", "response"]);

/** A log may have ten thousand entries, and a new one must not render the others again. */
const Entry = memo(function Entry({ activity, by }: { activity: Activity; by: string }) {
  const { type, message, parentId, createdAt, durationMs, payload } = activity;
  return (
    <li class={`activity activity-${type}${parentId === null ? "" : " activity-nested"}`}>
      <div class="activity-head">
        <span class="activity-type">{activityTitle[type]}</span>
        {by !== "" && <span>{by}</span>}
        <Time at={createdAt} />
        {durationMs !== null && <span class="muted">{formatDuration(durationMs)}</span>}
      </div>
      {message !== "" && (prose.has(type) ? <Markdown text={message} /> : <p class="activity-text">{message}</p>)}
      {payload !== null && payload !== undefined && (
        <details>
          <summary>Data</summary>
          <pre class="code" tabIndex={0} aria-label="Data of the activity">
            {prettyJSON(payload)}
          </pre>
        </details>
      )}
    </li>
  );
});

export function SessionActivities({ log }: { log: SessionLog }) {
  const name = useNames();
  const box = useRef<HTMLDivElement>(null);
  const [follow, setFollow] = useState(true);
  const [busy, setBusy] = useState(false);
  const { activities, hasEarlier, loading, error } = log;

  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [activities, follow]);

  const scrolled = () => {
    const b = box.current;
    if (b) setFollow(b.scrollHeight - b.scrollTop - b.clientHeight < nearEnd);
  };

  const earlier = async () => {
    setBusy(true);
    setFollow(false);
    try {
      await log.loadEarlier();
    } finally {
      setBusy(false);
    }
  };

  return (
    <Section title="Activities" actions={<Checkbox label="Follow the end" checked={follow} onChange={setFollow} />}>
      {hasEarlier && (
        <div class="row">
          <Button small busy={busy} onClick={() => void earlier()}>
            Show earlier activities
          </Button>
        </div>
      )}
      <FailureNote error={error} />
      <div ref={box} class="activities" role="log" aria-label="Activities" aria-busy={loading ? "true" : undefined} tabIndex={0} onScroll={scrolled}>
        {activities.length === 0 && !loading && <p class="muted">Nothing is logged yet.</p>}
        <ol class="plain-list">
          {activities.map((activity) => (
            <Entry key={activity.id} activity={activity} by={activity.type === "response" && activity.actorId ? name(activity.actorId) : ""} />
          ))}
        </ol>
      </div>
    </Section>
  );
}
