// An issue's relations to others, as lists and as a graph.

import { useMemo, useState } from "preact/hooks";
import { api, asFailure, usePages, useRead, type Failure } from "../../api";
import { useEvents } from "../../live";
import { A } from "../../router";
import { relationTypes, type Issue, type IssueGraph, type Relation, type RelationType } from "../../types";
import { Button, IconButton } from "../../ui/button";
import { Field, Select } from "../../ui/field";
import { StatusIcon } from "../../ui/marks";
import { Section } from "../../ui/page";
import { ErrorPanel } from "../../ui/states";
import { toastFailure } from "../../ui/toast";
import { pagePath, wsPath } from "../../workspace";
import { useThrottled } from "../refresh";
import { withRelations } from "./graph_layout";
import { Graph } from "./issue_graph";
import { IssuePick } from "./issue_pick";

export const relationNames: Record<RelationType, string> = {
  blocks: "Blocks",
  blocked_by: "Is blocked by",
  duplicates: "Is a duplicate of",
  duplicated_by: "Has the duplicate",
  discovered_from: "Was discovered from",
  led_to: "Led to",
  relates: "Relates to",
};

export function IssueRelations({ issue }: { issue: Issue }) {
  const list = usePages<Relation>(wsPath(`/issues/${issue.id}/relations`), "relations", { limit: 100 });
  const [adding, setAdding] = useState(false);
  const graph = useRead<IssueGraph>(list.items.length > 0 ? wsPath(`/issues/${issue.id}/graph`) : null, { depth: 3 });
  const again = useThrottled(() => {
    list.reload();
    graph.reload();
  }, 1000);
  useEvents(["relation.*", "issue.updated", "issue.deleted"], (event) => {
    if (event.type.startsWith("relation.")) {
      const known = graph.data?.nodes.some((node) => node.id === event.data?.fromId || node.id === event.data?.toId);
      if (known || event.data?.fromId === issue.id || event.data?.toId === issue.id) again();
    } else if (event.data?.id !== issue.id && graph.data?.nodes.some((node) => node.id === event.data?.id)) again();
  });

  const remove = async (relation: Relation) => {
    list.set(list.items.filter((r) => r !== relation));
    try {
      await api.send("DELETE", wsPath(`/issues/${issue.id}/relations/${relation.type}/${relation.issueId}`));
    } catch (error) {
      list.reload();
      toastFailure(error, () => void remove(relation));
    }
  };

  const whole = useMemo(() => graph.data && withRelations(graph.data, issue, list.items), [graph.data, list.items, issue.id]);
  const groups = relationTypes.map((type) => ({ type, relations: list.items.filter((r) => r.type === type) })).filter((g) => g.relations.length > 0);
  return (
    <Section
      title="Relations"
      actions={
        <Button small icon="plus" aria-expanded={adding} disabled={Boolean(issue.archivedAt)} onClick={() => setAdding(!adding)}>
          Add
        </Button>
      }
    >
      {adding && <AddRelation issue={issue} onAdded={again} onClose={() => setAdding(false)} />}
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      {groups.map(({ type, relations }) => (
        <div key={type}>
          <h3 class="relation-type">{relationNames[type]}</h3>
          <ul class="lines">
            {relations.map((relation) => (
              <li key={relation.issueId} class="line">
                <StatusIcon status={relation.status} named />
                <A href={pagePath("issues/" + (relation.identifier ?? relation.issueId))} class="grow clip">
                  <span class="identifier">{relation.identifier}</span> {relation.title}
                </A>
                <IconButton label={`Remove the relation to ${relation.identifier}`} icon="close" onClick={() => void remove(relation)} />
              </li>
            ))}
          </ul>
        </div>
      ))}
      {list.more && (
        <Button small onClick={list.loadMore} busy={list.loading}>
          Show more
        </Button>
      )}
      {whole && whole.nodes.length > 1 && <Graph graph={whole} center={issue.id} />}
    </Section>
  );
}

function AddRelation({ issue, onAdded, onClose }: { issue: Issue; onAdded(): void; onClose(): void }) {
  const [type, setType] = useState<RelationType>("blocked_by");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const add = async (other: Issue) => {
    setBusy(true);
    setFailure(null);
    try {
      await api.send("PUT", wsPath(`/issues/${issue.id}/relations/${type}/${other.id}`));
      onAdded();
      onClose();
    } catch (error) {
      const why = asFailure(error);
      const ring: unknown = why.details?.path;
      if (Array.isArray(ring)) why.message += ` The ring: ${ring.join(" → ")}.`;
      setFailure(why);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="relation-add">
      <Field label="This issue">
        <Select value={type} onChange={(next) => setType(next as RelationType)} options={relationTypes.map((t) => ({ value: t, label: relationNames[t] }))} />
      </Field>
      <Field label="The other issue">
        <IssuePick label="The other issue" placeholder={busy ? "Saving…" : "Choose an issue"} except={issue.id} disabled={busy} onPick={(other) => other && void add(other)} />
      </Field>
      {failure && <ErrorPanel error={failure} />}
    </div>
  );
}
