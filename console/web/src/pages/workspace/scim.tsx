// SCIM connections: identity providers that keep members and teams in line.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { wsPath } from "../../workspace";
import type { CreatedSCIMConnection, SCIMConnection } from "../../types_admin";
import { Badge, Button, Checkbox, type Column, Empty, ErrorPanel, Field, Page, Select, Spinner, Table, Time } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { useRights } from "../rights";
import { SecretDialog } from "../secret_dialog";
import { askAndSend } from "./acts";
import { AdminsOnly } from "./admins_only";

const scopeTitle: Record<string, string> = {
  "scim.users.read": "Read users",
  "scim.users.write": "Change users",
  "scim.groups.read": "Read groups",
  "scim.groups.write": "Change groups",
};

const lives = [
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
];

function ConnectionDialog({ onMade, onClose }: { onMade(made: CreatedSCIMConnection): void; onClose(): void }) {
  const [scopes, setScopes] = useState(Object.keys(scopeTitle));
  const [days, setDays] = useState("365");
  const act = useAct();
  const submit = async () => {
    const body = { scopes, expiresInDays: Number(days) };
    let made: CreatedSCIMConnection | undefined;
    const done = await act.run(body, async (key) => {
      made = (await api.send<CreatedSCIMConnection>("POST", wsPath("/scim/connections"), body, { key })).data;
    });
    if (done && made) onMade(made);
  };
  return (
    <FormDialog title="New SCIM connection" action="Make connection" act={act} fields={["scopes", "expiresInDays"]} incomplete={scopes.length === 0} onSubmit={() => void submit()} onClose={onClose}>
      <fieldset class="fieldset">
        <legend>Scopes</legend>
        {Object.entries(scopeTitle).map(([scope, title]) => (
          <Checkbox key={scope} label={title} checked={scopes.includes(scope)} onChange={(on) => setScopes(Object.keys(scopeTitle).filter((s) => (s === scope ? on : scopes.includes(s))))} />
        ))}
        {faultOf(act.error, "scopes") && <p class="field-error">{faultOf(act.error, "scopes")}</p>}
      </fieldset>
      <Field label="Good for" error={faultOf(act.error, "expiresInDays")}>
        <Select value={days} onChange={setDays} options={lives} />
      </Field>
    </FormDialog>
  );
}

function Connections() {
  const connections = useRead<{ connections: SCIMConnection[] }>(wsPath("/scim/connections"));
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<CreatedSCIMConnection | null>(null);
  const remove = async (connection: SCIMConnection) => {
    const done = await askAndSend(
      { title: "Delete the connection?", text: "Its token is refused at once. Members and teams stay.", action: "Delete connection", danger: true },
      "DELETE",
      wsPath(`/scim/connections/${connection.connectionId}`),
      "The connection is deleted.",
    );
    if (done) connections.reload();
  };
  const columns: Column<SCIMConnection>[] = [
    { key: "id", title: "Connection", render: (c) => <code>…{c.connectionId.slice(-6)}</code> },
    { key: "status", title: "State", render: (c) => (c.status === "active" ? <Badge kind="success">Active</Badge> : <Badge kind="warning">Expired</Badge>) },
    { key: "scopes", title: "Scopes", wide: true, render: (c) => c.scopes.map((s) => scopeTitle[s] ?? s).join(", ") },
    { key: "made", title: "Made", wide: true, render: (c) => <Time at={c.createdAt} /> },
    { key: "expires", title: "Ends", render: (c) => <Time at={c.expiresAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (c) => (
        <Button small kind="quiet" onClick={() => void remove(c)}>
          Delete
        </Button>
      ),
    },
  ];
  return (
    <Page
      title="SCIM"
      subtitle="An identity provider such as Okta or Entra ID makes and deactivates members, and pushes groups as teams."
      actions={
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New connection
        </Button>
      }
    >
      {connections.error ? (
        <ErrorPanel error={connections.error} retry={connections.reload} />
      ) : !connections.data ? (
        <Spinner />
      ) : (
        <Table
          label="SCIM connections"
          columns={columns}
          rows={connections.data.connections}
          rowKey={(c) => c.connectionId}
          empty={
            <Empty title="No identity provider is connected." icon="people">
              The provider needs the base URL and the token of a connection.
            </Empty>
          }
        />
      )}
      {making && (
        <ConnectionDialog
          onClose={() => setMaking(false)}
          onMade={(connection) => {
            setMaking(false);
            setMade(connection);
            connections.reload();
          }}
        />
      )}
      {made && (
        <SecretDialog
          title="SCIM connection"
          secrets={[
            { label: "Base URL", value: made.baseUrl },
            { label: "Token", value: made.token },
          ]}
          onClose={() => setMade(null)}
        />
      )}
    </Page>
  );
}

export default function SCIMPage() {
  return useRights().admin ? <Connections /> : <AdminsOnly title="SCIM" />;
}
