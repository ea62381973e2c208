// The teams of the workspace, with their members.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { refresh, useAgents, useMembers, useNames, wsPath } from "../../workspace";
import type { Team } from "../../types";
import type { TeamMember } from "../../types_admin";
import { Badge, Button, Checkbox, type Column, Combobox, Dialog, Empty, ErrorPanel, Field, Menu, Page, Select, Spinner, TextInput, toast, toastFailure } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { MoreRows, PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { askAndSend } from "./acts";

interface TeamDialogProps {
  team: Team | null;
  onDone(): void;
  onClose(): void;
}

function TeamDialog({ team, onDone, onClose }: TeamDialogProps) {
  const members = useMembers();
  const agents = useAgents();
  const [name, setName] = useState(team?.name ?? "");
  const [teamKey, setTeamKey] = useState(team?.key ?? "");
  const [isPublic, setPublic] = useState(team?.isPublic ?? true);
  const [isDefault, setDefault] = useState(team?.isDefault ?? false);
  const [parentAutoClose, setParentClose] = useState(team?.parentAutoClose ?? false);
  const [subIssueAutoClose, setSubClose] = useState(team?.subIssueAutoClose ?? false);
  const [triage, setTriage] = useState(team?.triageAssigneeId ?? "");
  const act = useAct();
  const submit = async () => {
    const body: Record<string, unknown> = { name: name.trim(), key: teamKey.trim(), isPublic, parentAutoClose, subIssueAutoClose, triageAssigneeId: triage || null };
    if (team && isDefault && !team.isDefault) body.isDefault = true;
    const done = await act.run(body, (key) => api.send(team ? "PATCH" : "POST", team ? wsPath(`/teams/${team.id}`) : wsPath("/teams"), body, { key }));
    if (!done) return;
    toast(team ? "The team is changed." : "The team is made.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title={team ? `Settings of ${team.name}` : "New team"}
      action={team ? "Save" : "Make team"}
      act={act}
      fields={["name", "key", "triageAssigneeId"]}
      incomplete={name.trim() === "" || teamKey.trim() === ""}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <Field label="Key" hint="Identifiers of issues begin with it, such as CORE-12." error={faultOf(act.error, "key")}>
        <TextInput value={teamKey} onInput={setTeamKey} maxLength={10} />
      </Field>
      <Field label="Assignee of new issues in triage" error={faultOf(act.error, "triageAssigneeId")}>
        <Select
          value={triage}
          onChange={setTriage}
          options={[
            { value: "", label: "Nobody" },
            ...members.map((m) => ({ value: m.userId, label: m.name ?? m.email ?? m.userId })),
            ...agents.map((a) => ({ value: a.id, label: `${a.name} (agent)` })),
          ]}
        />
      </Field>
      <Checkbox label="Public" hint="Everybody in the workspace sees a public team. A private one is seen by its members and by admins." checked={isPublic} onChange={setPublic} />
      {team && <Checkbox label="Default team" hint="It gets the issues that name no team." checked={isDefault} disabled={team.isDefault} onChange={setDefault} />}
      <Checkbox label="Close a parent when its last child is closed" checked={parentAutoClose} onChange={setParentClose} />
      <Checkbox label="Close the children with their parent" checked={subIssueAutoClose} onChange={setSubClose} />
    </FormDialog>
  );
}

function TeamMembers({ team, onClose }: { team: Team; onClose(): void }) {
  const rights = useRights();
  const name = useNames();
  const people = useMembers();
  const agents = useAgents();
  const members = usePages<TeamMember>(wsPath(`/teams/${team.id}/members`), "members", { limit: 100 });
  const path = (userId: string) => wsPath(`/teams/${team.id}/members/${encodeURIComponent(userId)}`);
  const change = async (method: "PUT" | "DELETE", userId: string) => {
    try {
      await api.send(method, path(userId));
      members.reload();
    } catch (error) {
      toastFailure(error, () => void change(method, userId));
    }
  };
  const inTeam = new Set(members.items.map((m) => m.userId));
  const options = [
    ...people.map((m) => ({ value: m.userId, label: m.name ?? m.email ?? m.userId })),
    ...agents.map((a) => ({ value: a.id, label: a.name, hint: "agent" })),
  ].filter((o) => !inTeam.has(o.value));
  return (
    <Dialog title={`Members of ${team.name}`} onClose={onClose} footer={<Button onClick={onClose}>Close</Button>}>
      {rights.write && <Combobox label="Add to the team" placeholder="Add a member or an agent" options={options} value={null} onChange={(id: string | null) => id && void change("PUT", id)} />}
      {members.error && <ErrorPanel error={members.error} retry={members.reload} />}
      {members.loading && members.items.length === 0 && <Spinner />}
      <ul class="plain-list rows">
        {members.items.map((m) => (
          <li key={m.userId} class="row">
            <span class="grow">{name(m.userId)}</span>
            {rights.write && (
              <Button small kind="quiet" aria-label={`Remove ${name(m.userId)}`} onClick={() => void change("DELETE", m.userId)}>
                Remove
              </Button>
            )}
          </li>
        ))}
      </ul>
      <MoreRows pages={members} />
    </Dialog>
  );
}

export default function TeamsPage() {
  const rights = useRights();
  const name = useNames();
  const teams = usePages<Team>(wsPath("/teams"), "teams", { limit: 100 });
  const [editing, setEditing] = useState<Team | null | undefined>(undefined);
  const [shown, setShown] = useState<Team | null>(null);
  const reload = () => {
    teams.reload();
    refresh("teams");
  };
  const remove = async (team: Team) => {
    const done = await askAndSend(
      { title: `Delete ${team.name}?`, text: "A team that has issues can't be deleted.", action: "Delete team", danger: true },
      "DELETE",
      wsPath(`/teams/${team.id}`),
      "The team is deleted.",
    );
    if (done) reload();
  };
  const columns: Column<Team>[] = [
    {
      key: "name",
      title: "Team",
      render: (t) => (
        <span class="badges">
          <span>{t.name}</span>
          {t.isDefault && <Badge kind="accent">Default</Badge>}
          {!t.isPublic && <Badge>Private</Badge>}
        </span>
      ),
    },
    { key: "key", title: "Key", render: (t) => <code>{t.key}</code> },
    { key: "owner", title: "Owner", wide: true, render: (t) => name(t.ownerId) },
    { key: "triage", title: "Triage", wide: true, render: (t) => (t.triageAssigneeId ? name(t.triageAssigneeId) : "") },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (t) => (
        <span class="row row-end">
          <Button small onClick={() => setShown(t)}>
            Members
          </Button>
          {rights.write && (
            <Menu
              label={`More acts for ${t.name}`}
              items={[
                { label: "Change settings", icon: "edit", onSelect: () => setEditing(t) },
                { label: "Delete team", icon: "trash", danger: true, disabled: t.isDefault, onSelect: () => void remove(t) },
              ]}
            />
          )}
        </span>
      ),
    },
  ];
  return (
    <Page
      title="Teams"
      subtitle="Issues belong to a team and are numbered by it."
      actions={
        rights.write && (
          <Button kind="primary" icon="plus" onClick={() => setEditing(null)}>
            New team
          </Button>
        )
      }
    >
      <PagedTable label="Teams" pages={teams} columns={columns} rowKey={(t) => t.id} empty={<Empty title="There are no teams." />} />
      {editing !== undefined && (
        <TeamDialog
          team={editing}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            reload();
          }}
        />
      )}
      {shown && <TeamMembers team={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}
