// A list of administrative acts, of a workspace or of the cluster, with its filters.

import { useState } from "preact/hooks";
import { usePages } from "../api";
import { setQuery, useRoute } from "../router";
import { useNames } from "../workspace";
import type { AuditEntry } from "../types_admin";
import { Button, type Column, Empty, Field, Select, TextInput, Time } from "../ui";
import { PagedTable } from "./paged_table";

const kinds = [
  "token", "member", "team", "oauth_client", "scim_connection", "webhook", "channel", "inbound_secret", "inbound_route",
  "access", "share", "limit", "hold", "budget", "retention", "workspace", "cluster", "node", "shard",
];

function valueText(value: unknown): string {
  if (value === null || value === undefined) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function Changes({ changes }: { changes: AuditEntry["changes"] }) {
  const fields = Object.entries(changes);
  if (fields.length === 0) return null;
  return (
    <details>
      <summary>{fields.length === 1 ? fields[0]![0] : `${fields.length} fields`}</summary>
      <dl class="facts">
        {fields.map(([field, { from, to }]) => (
          <div key={field} class="fact">
            <dt>{field}</dt>
            <dd class="break">
              {from !== null && <del>{valueText(from)}</del>} {to !== null && <ins>{valueText(to)}</ins>}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** A day as a date input has it, as the moment at which it begins or ends in UTC. */
function bound(day: string | undefined, after: number): string | undefined {
  if (!day) return undefined;
  const at = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(at) ? undefined : new Date(at + after * 86_400_000).toISOString();
}

export function AuditList({ path }: { path: string }) {
  const name = useNames();
  const { query } = useRoute();
  const [actor, setActor] = useState(query.actorId ?? "");
  const [target, setTarget] = useState(query.targetId ?? "");
  const entries = usePages<AuditEntry>(path, "entries", {
    action: query.action,
    actorId: query.actorId,
    targetId: query.targetId,
    from: bound(query.from, 0),
    to: bound(query.to, 1),
  });
  const columns: Column<AuditEntry>[] = [
    { key: "at", title: "When", render: (e) => <Time at={e.at} /> },
    { key: "actor", title: "Actor", render: (e) => (e.actor.type === "root" ? "Operator" : name(e.actor.id)) },
    { key: "action", title: "Act", render: (e) => <code>{e.action}</code> },
    { key: "target", title: "Target", render: (e) => <code class="break">{e.target.id}</code> },
    { key: "changes", title: "Changes", render: (e) => <Changes changes={e.changes} /> },
    { key: "address", title: "Address", wide: true, render: (e) => e.address },
  ];
  return (
    <>
      <form
        class="filters"
        aria-label="Filters"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ actorId: actor.trim(), targetId: target.trim() });
        }}
      >
        <Field label="Act">
          <Select
            value={query.action ?? ""}
            onChange={(action) => setQuery({ action })}
            options={[{ value: "", label: "All acts" }, ...kinds.map((kind) => ({ value: `${kind}.*`, label: kind.replace("_", " ") }))]}
          />
        </Field>
        <Field label="Id of the actor">
          <TextInput value={actor} onInput={setActor} maxLength={255} />
        </Field>
        <Field label="Id of the target">
          <TextInput value={target} onInput={setTarget} maxLength={512} />
        </Field>
        <Field label="From">
          <TextInput type="date" value={query.from ?? ""} onInput={(from) => setQuery({ from })} />
        </Field>
        <Field label="To">
          <TextInput type="date" value={query.to ?? ""} onInput={(to) => setQuery({ to })} />
        </Field>
        <Button type="submit" icon="filter">
          Filter
        </Button>
        <Button icon="refresh" busy={entries.loading} onClick={entries.reload}>
          Read again
        </Button>
      </form>
      <PagedTable label="Administrative acts" pages={entries} columns={columns} rowKey={(e) => e.id} empty={<Empty title="No act fits." icon="file" />} />
    </>
  );
}
