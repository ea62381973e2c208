// OAuth clients: programs that get access tokens of an hour.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { wsPath } from "../../workspace";
import type { CreatedOAuthClient, OAuthClient } from "../../types_admin";
import { Button, type Column, Empty, Field, Page, TextArea, TextInput, Time, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { SecretDialog } from "../secret_dialog";
import { askAndSend } from "./acts";
import { AdminsOnly } from "./admins_only";
import { PermissionsField } from "./permissions_field";

function words(text: string): string[] {
  return text.split(/\s+/).filter(Boolean);
}

interface ClientDialogProps {
  client: OAuthClient | null;
  onMade(client: CreatedOAuthClient): void;
  onSaved(): void;
  onClose(): void;
}

function ClientDialog({ client, onMade, onSaved, onClose }: ClientDialogProps) {
  const [name, setName] = useState(client?.name ?? "");
  const [permissions, setPermissions] = useState(client ? client.permissions.split(",") : ["read"]);
  const [redirects, setRedirects] = useState((client?.redirectUris ?? []).join("\n"));
  const [scopes, setScopes] = useState((client?.scopes ?? []).join(" "));
  const act = useAct();
  const submit = async () => {
    const body = { name: name.trim(), permissions, redirectUris: words(redirects), scopes: words(scopes) };
    let made: CreatedOAuthClient | undefined;
    const done = await act.run(body, async (key) => {
      const path = client ? wsPath(`/oauth-clients/${client.id}`) : wsPath("/oauth-clients");
      made = (await api.send<CreatedOAuthClient>(client ? "PATCH" : "POST", path, body, { key })).data;
    });
    if (!done || !made) return;
    if (client) {
      toast("The client is changed.", { kind: "success" });
      onSaved();
    } else {
      onMade(made);
    }
  };
  return (
    <FormDialog
      title={client ? `Change ${client.name}` : "New OAuth client"}
      action={client ? "Save" : "Make client"}
      act={act}
      fields={["name", "permissions", "redirectUris", "scopes"]}
      incomplete={name.trim() === "" || permissions.length === 0}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <PermissionsField chosen={permissions} onChange={setPermissions} error={faultOf(act.error, "permissions")} />
      <Field label="Redirect URIs" hint="One on each line. They are kept and shown." error={faultOf(act.error, "redirectUris")}>
        <TextArea value={redirects} onInput={setRedirects} rows={2} />
      </Field>
      <Field label="Scopes" hint="Words with spaces between. They are kept, and a program may ask for them." error={faultOf(act.error, "scopes")}>
        <TextInput value={scopes} onInput={setScopes} />
      </Field>
    </FormDialog>
  );
}

function Clients() {
  const clients = usePages<OAuthClient>(wsPath("/oauth-clients"), "clients", { limit: 100 });
  const [editing, setEditing] = useState<OAuthClient | null | undefined>(undefined);
  const [made, setMade] = useState<CreatedOAuthClient | null>(null);
  const remove = async (client: OAuthClient) => {
    const done = await askAndSend(
      { title: `Delete ${client.name}?`, text: "The client and its access tokens end at once.", action: "Delete client", danger: true },
      "DELETE",
      wsPath(`/oauth-clients/${client.id}`),
      "The client is deleted.",
    );
    if (done) clients.reload();
  };
  const columns: Column<OAuthClient>[] = [
    { key: "name", title: "Client", render: (c) => c.name },
    { key: "permissions", title: "Permissions", render: (c) => <code>{c.permissions}</code> },
    { key: "scopes", title: "Scopes", wide: true, render: (c) => c.scopes.join(" ") },
    { key: "since", title: "Made", wide: true, render: (c) => <Time at={c.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (c) => (
        <span class="row row-end">
          <Button small onClick={() => setEditing(c)}>
            Change
          </Button>
          <Button small kind="quiet" aria-label={`Delete ${c.name}`} onClick={() => void remove(c)}>
            Delete
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Page
      title="OAuth clients"
      subtitle="A client gets access tokens of an hour at /oauth/token. In events and histories it is an agent."
      actions={
        <Button kind="primary" icon="plus" onClick={() => setEditing(null)}>
          New client
        </Button>
      }
    >
      <PagedTable label="OAuth clients" pages={clients} columns={columns} rowKey={(c) => c.id} empty={<Empty title="There are no clients." icon="key" />} />
      {editing !== undefined && (
        <ClientDialog
          client={editing}
          onClose={() => setEditing(undefined)}
          onSaved={() => {
            setEditing(undefined);
            clients.reload();
          }}
          onMade={(client) => {
            setEditing(undefined);
            setMade(client);
            clients.reload();
          }}
        />
      )}
      {made && (
        <SecretDialog
          title={`Client “${made.name}”`}
          secrets={[
            { label: "Client id", value: made.clientId },
            { label: "Client secret", value: made.clientSecret },
          ]}
          onClose={() => setMade(null)}
        />
      )}
    </Page>
  );
}

export default function OAuthPage() {
  return useRights().admin ? <Clients /> : <AdminsOnly title="OAuth clients" />;
}
