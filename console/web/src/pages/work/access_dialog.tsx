// The people, agents and teams that a restricted issue is open to.

import { useMemo, useState } from "preact/hooks";
import { api, useRead } from "../../api";
import type { Issue } from "../../types";
import { Button, IconButton } from "../../ui/button";
import { Combobox, type Option } from "../../ui/combobox";
import { Dialog } from "../../ui/dialog";
import { Field } from "../../ui/field";
import { ErrorPanel, Spinner } from "../../ui/states";
import { useAgents, useMembers, useNames, useTeams, wsPath } from "../../workspace";
import { useAct } from "../act";

interface Grant {
  actorId: string;
  actorType: "user" | "agent" | "team";
}

export function AccessDialog({ issue, onClose }: { issue: Issue; onClose(): void }) {
  const path = wsPath(`/issues/${issue.id}/permissions`);
  const read = useRead<{ permissions: Grant[] }>(path);
  const [chosen, setChosen] = useState<string | null>(null);
  const act = useAct();
  const names = useNames();
  const members = useMembers();
  const agents = useAgents();
  const teams = useTeams();
  const options = useMemo<Option[]>(
    () => [
      ...members.map((m) => ({ value: "user:" + m.userId, label: names(m.userId) })),
      ...agents.map((a) => ({ value: "agent:" + a.id, label: a.name, hint: "agent" })),
      ...teams.map((t) => ({ value: "team:" + t.id, label: t.name, hint: "team" })),
    ],
    [members, agents, teams, names],
  );
  const grants = read.data?.permissions ?? [];
  const nameOf = (grant: Grant) => (grant.actorType === "team" ? (teams.find((t) => t.id === grant.actorId)?.name ?? grant.actorId) : names(grant.actorId));
  const add = () =>
    void act.run({ chosen }, async (key) => {
      const [actorType, actorId] = [chosen!.slice(0, chosen!.indexOf(":")), chosen!.slice(chosen!.indexOf(":") + 1)];
      await api.send("PUT", path, { actorId, actorType }, { key });
      setChosen(null);
      read.reload();
    });
  const remove = (grant: Grant) =>
    void act.run(grant, async (key) => {
      await api.send("DELETE", `${path}/${encodeURIComponent(grant.actorId)}`, undefined, { key });
      read.reload();
    });
  return (
    <Dialog title={`Access to ${issue.identifier}`} onClose={onClose}>
      <p>
        {grants.length === 0
          ? "Everybody who sees the team's issues sees this one. With the first entry it is restricted to that entry and to admins."
          : "Only these and admins see the issue. Without the last one it is open to the whole team again."}
      </p>
      {read.loading && !read.data && <Spinner />}
      {read.error && <ErrorPanel error={read.error} retry={read.reload} />}
      <ul class="lines">
        {grants.map((grant) => (
          <li key={grant.actorId} class="line">
            <span class="grow">{nameOf(grant)}</span>
            <span class="muted">{grant.actorType}</span>
            <IconButton label={`Remove ${nameOf(grant)}`} icon="close" onClick={() => remove(grant)} />
          </li>
        ))}
      </ul>
      <Field label="Open it to">
        <Combobox label="Open it to" options={options} value={chosen} onChange={setChosen} placeholder="Choose" />
      </Field>
      <div class="row">
        <Button kind="primary" busy={act.busy} disabled={!chosen} onClick={add}>
          Add
        </Button>
      </div>
      {act.error && <ErrorPanel error={act.error} />}
    </Dialog>
  );
}
