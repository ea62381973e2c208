// Workspace tokens: the credentials of people and agents.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { refresh, useAgents, useMembers, useNames, wsPath } from "../../workspace";
import type { CreatedToken, Token } from "../../types_admin";
import { Badge, Button, type Column, Empty, Field, Page, Select, TextInput, Time } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { SecretDialog } from "../secret_dialog";
import { askAndSend } from "./acts";
import { AdminsOnly } from "./admins_only";
import { expiries, expiryAfter } from "./expiry";
import { PermissionsField } from "./permissions_field";

type For = "me" | "member" | "agent" | "new";

function TokenDialog({ onMade, onClose }: { onMade(token: CreatedToken): void; onClose(): void }) {
  const members = useMembers();
  const agents = useAgents();
  const [name, setName] = useState("");
  const [whose, setWhose] = useState<For>("me");
  const [member, setMember] = useState("");
  const [agent, setAgent] = useState("");
  const [provider, setProvider] = useState("");
  const [permissions, setPermissions] = useState(["write"]);
  const [days, setDays] = useState("90");
  const act = useAct();

  const pick = (next: For) => {
    setWhose(next);
    const forAgent = next === "agent" || next === "new";
    setPermissions(forAgent ? ["sessions:write"] : ["write"]);
    setDays(forAgent ? "" : "90");
  };
  const incomplete = name.trim() === "" || permissions.length === 0 || (whose === "member" && member === "") || (whose === "agent" && agent === "");
  const submit = async () => {
    const what = { name: name.trim(), whose, member, agent, provider, permissions, days };
    let made: CreatedToken | undefined;
    const done = await act.run(what, async (key) => {
      const body: Record<string, unknown> = { name: what.name, permissions };
      if (whose === "member") body.userId = member;
      if (whose === "agent" || whose === "new") body.actorType = "agent";
      if (whose === "agent") body.agentId = agent;
      if (whose === "new" && provider.trim()) body.provider = provider.trim();
      const expiresAt = expiryAfter(days);
      if (expiresAt) body.expiresAt = expiresAt;
      made = (await api.send<CreatedToken>("POST", wsPath("/tokens"), body, { key })).data;
    });
    if (!done || !made) return;
    if (whose === "new") refresh("agents");
    onMade(made);
  };
  return (
    <FormDialog
      title="New token"
      action="Make token"
      act={act}
      fields={["name", "permissions", "userId", "agentId", "expiresAt", "provider"]}
      incomplete={incomplete}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <Field label="The token acts for" error={faultOf(act.error, "userId") ?? faultOf(act.error, "agentId")}>
        <Select
          value={whose}
          onChange={(value) => pick(value as For)}
          options={[
            { value: "me", label: "Me" },
            { value: "member", label: "Another member" },
            { value: "agent", label: "An agent" },
            { value: "new", label: "A new agent with the token's name" },
          ]}
        />
      </Field>
      {whose === "member" && (
        <Field label="Member">
          <Select value={member} onChange={setMember} options={[{ value: "", label: "Choose a member" }, ...members.map((m) => ({ value: m.userId, label: m.name ?? m.email ?? m.userId }))]} />
        </Field>
      )}
      {whose === "agent" && (
        <Field label="Agent">
          <Select value={agent} onChange={setAgent} options={[{ value: "", label: "Choose an agent" }, ...agents.map((a) => ({ value: a.id, label: a.name }))]} />
        </Field>
      )}
      {whose === "new" && (
        <Field label="Provider" error={faultOf(act.error, "provider")}>
          <TextInput value={provider} onInput={setProvider} maxLength={200} />
        </Field>
      )}
      <PermissionsField chosen={permissions} onChange={setPermissions} error={faultOf(act.error, "permissions")} />
      <Field label="Good for" error={faultOf(act.error, "expiresAt")}>
        <Select value={days} onChange={setDays} options={expiries} />
      </Field>
    </FormDialog>
  );
}

function Tokens() {
  const name = useNames();
  const tokens = usePages<Token>(wsPath("/tokens"), "tokens", { limit: 100 });
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedToken | null>(null);
  const remove = async (token: Token) => {
    const done = await askAndSend(
      {
        title: `Delete ${token.name}?`,
        text: "Programs that use the token are refused with their next request. So are the sessions that an agent claimed with it, and console sessions that were opened with it.",
        action: "Delete token",
        danger: true,
      },
      "DELETE",
      wsPath(`/tokens/${token.id}`),
      "The token is deleted.",
    );
    if (done) tokens.reload();
  };
  const columns: Column<Token>[] = [
    { key: "name", title: "Token", render: (t) => t.name },
    {
      key: "actor",
      title: "Acts for",
      render: (t) => (
        <span class="badges">
          {name(t.actorId)}
          {t.actorType === "agent" && <Badge kind="info">Agent</Badge>}
        </span>
      ),
    },
    { key: "permissions", title: "Permissions", render: (t) => <code>{t.permissions}</code> },
    { key: "used", title: "Last used", wide: true, render: (t) => <Time at={t.lastUsedAt} /> },
    { key: "expires", title: "Ends", wide: true, render: (t) => (t.expiresAt ? <Time at={t.expiresAt} /> : "never") },
    { key: "by", title: "Made by", wide: true, render: (t) => (t.createdById ? name(t.createdById) : "") },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (t) => (
        <Button small kind="quiet" aria-label={`Delete ${t.name}`} onClick={() => void remove(t)}>
          Delete
        </Button>
      ),
    },
  ];
  return (
    <Page
      title="Tokens"
      subtitle="Credentials of people and agents. The use of a token is noted once an hour."
      actions={
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New token
        </Button>
      }
    >
      <PagedTable label="Tokens" pages={tokens} columns={columns} rowKey={(t) => t.id} empty={<Empty title="There are no tokens." icon="key" />} />
      {making && (
        <TokenDialog
          onClose={() => setMaking(false)}
          onMade={(token) => {
            setMaking(false);
            setMade(token);
            tokens.reload();
          }}
        />
      )}
      {made && <SecretDialog title={`Token “${made.name}”`} secrets={[{ label: "Token", value: made.token }]} onClose={() => setMade(null)} />}
    </Page>
  );
}

export default function TokensPage() {
  return useRights().admin ? <Tokens /> : <AdminsOnly title="Tokens" />;
}
