// Calls of providers: the secrets that they are signed with, and the numbers and repositories
// that belong to the workspace.

import { useState } from "preact/hooks";
import { api, usePages, useRead } from "../../api";
import { useWorkspace, wsPath } from "../../workspace";
import type { InboundRoute, InboundSecret, InboundSource } from "../../types_admin";
import { Badge, Button, type Column, Empty, ErrorPanel, Field, Page, Section, Select, Table, TextInput, Time, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { CopyField, SecretDialog } from "../secret_dialog";
import { askAndSend } from "./acts";
import { AdminsOnly } from "./admins_only";

const kindTitle: Record<InboundRoute["kind"], string> = { sms: "Telephone number", vcs1: "Repository" };

function SourceDialog({ source: known, onMade, onClose }: { source: string | null; onMade(secret: InboundSecret): void; onClose(): void }) {
  const [source, setSource] = useState(known ?? "");
  const [secret, setSecret] = useState("");
  const act = useAct();
  const submit = async () => {
    const body = secret === "" ? {} : { secret };
    let made: InboundSecret | undefined;
    const done = await act.run({ source, secret }, async (key) => {
      made = (await api.send<InboundSecret>("PUT", wsPath(`/inbound-secrets/${encodeURIComponent(source)}`), body, { key })).data;
    });
    if (done && made) onMade(made);
  };
  return (
    <FormDialog
      title={known ? `New secret of ${known}` : "Set the secret of a source"}
      action="Set secret"
      act={act}
      fields={["source", "secret"]}
      incomplete={!/^[a-z0-9_.-]{1,64}$/.test(source)}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      {known && <p>Calls that are signed with the old secret are refused from then on.</p>}
      <Field label="Source" hint="A name of a-z 0-9 - _ . such as mail. helpdesk1 is that of Intercom." error={faultOf(act.error, "source")}>
        <TextInput value={source} onInput={setSource} disabled={known !== null} maxLength={64} data-autofocus={known === null} />
      </Field>
      <Field label="Secret" hint="Empty to have one made. 16 to 256 characters are advised." error={faultOf(act.error, "secret")}>
        <TextInput type="password" autocomplete="off" value={secret} onInput={setSecret} maxLength={256} />
      </Field>
    </FormDialog>
  );
}

function RouteDialog({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [kind, setKind] = useState<InboundRoute["kind"]>("vcs1");
  const [name, setName] = useState("");
  const act = useAct();
  const submit = async () => {
    let route: InboundRoute | undefined;
    const done = await act.run({ kind, name }, async (key) => {
      const path = wsPath(`/inbound-routes/${kind}/${encodeURIComponent(name.trim())}`);
      route = (await api.send<{ route: InboundRoute }>("PUT", path, undefined, { key })).data.route;
    });
    if (!done || !route) return;
    toast(route.status === "active" ? "Its calls come to this workspace." : "The operator has to confirm it.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog title="Claim a number or repository" action="Claim" act={act} fields={["kind", "key"]} incomplete={name.trim() === ""} onSubmit={() => void submit()} onClose={onClose}>
      <Field label="Kind" error={faultOf(act.error, "kind")}>
        <Select
          value={kind}
          onChange={(value) => setKind(value as InboundRoute["kind"])}
          options={[
            { value: "vcs1", label: "Repository of GitHub" },
            { value: "sms", label: "Telephone number of Twilio" },
          ]}
        />
      </Field>
      <Field label={kindTitle[kind]} hint={kind === "sms" ? "Such as +15550100." : "Such as acme/yard."} error={faultOf(act.error, "key")}>
        <TextInput value={name} onInput={setName} maxLength={255} data-autofocus />
      </Field>
    </FormDialog>
  );
}

function Sources() {
  const workspace = useWorkspace();
  const sources = usePages<InboundSource>(wsPath("/inbound-secrets"), "secrets", { limit: 100 });
  const [editing, setEditing] = useState<string | null | undefined>(undefined);
  const [made, setMade] = useState<InboundSecret | null>(null);
  const remove = async (source: string) => {
    const done = await askAndSend(
      { title: `Turn ${source} off?`, text: "Its calls are refused from then on.", action: "Delete secret", danger: true },
      "DELETE",
      wsPath(`/inbound-secrets/${encodeURIComponent(source)}`),
      "The source is off.",
    );
    if (done) sources.reload();
  };
  const addressOf = (source: string) => (source === "helpdesk1" ? `${location.origin}/helpdesk1/${workspace.id}` : `${location.origin}/webhooks/comms/${workspace.id}/${source}`);
  const columns: Column<InboundSource>[] = [
    { key: "source", title: "Source", render: (s) => <code>{s.source}</code> },
    { key: "address", title: "Address for its calls", wide: true, render: (s) => <code class="break">{addressOf(s.source)}</code> },
    { key: "updated", title: "Secret set", render: (s) => <Time at={s.updatedAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (s) => (
        <span class="row row-end">
          <Button small onClick={() => setEditing(s.source)}>
            New secret
          </Button>
          <Button small kind="quiet" aria-label={`Delete the secret of ${s.source}`} onClick={() => void remove(s.source)}>
            Delete
          </Button>
        </span>
      ),
    },
  ];
  return (
    <Section
      title="Sources"
      actions={
        <Button small icon="plus" onClick={() => setEditing(null)}>
          Add source
        </Button>
      }
    >
      <p class="muted">Each source signs its calls with its own secret. A call with a message becomes a ticket, any other an event.</p>
      <PagedTable label="Sources" pages={sources} columns={columns} rowKey={(s) => s.source} empty={<Empty title="No source has a secret." />} />
      {editing !== undefined && (
        <SourceDialog
          source={editing}
          onClose={() => setEditing(undefined)}
          onMade={(secret) => {
            setEditing(undefined);
            setMade(secret);
            sources.reload();
          }}
        />
      )}
      {made && (
        <SecretDialog
          title={`Secret of ${made.source}`}
          secrets={[
            { label: "Secret", value: made.secret },
            { label: "Address", value: addressOf(made.source) },
          ]}
          onClose={() => setMade(null)}
        />
      )}
    </Section>
  );
}

function Routes() {
  const routes = useRead<{ routes: InboundRoute[] }>(wsPath("/inbound-routes"));
  const [adding, setAdding] = useState(false);
  const remove = async (route: InboundRoute) => {
    const done = await askAndSend(
      { title: `Give up ${route.key}?`, text: "Its calls no longer come to this workspace.", action: "Give up", danger: true },
      "DELETE",
      wsPath(`/inbound-routes/${route.kind}/${encodeURIComponent(route.key)}`),
      "The route is removed.",
    );
    if (done) routes.reload();
  };
  const columns: Column<InboundRoute>[] = [
    { key: "key", title: "Number or repository", render: (r) => <code>{r.key}</code> },
    { key: "kind", title: "Kind", wide: true, render: (r) => kindTitle[r.kind] },
    { key: "status", title: "State", render: (r) => (r.status === "active" ? <Badge kind="success">Active</Badge> : <Badge kind="warning">The operator has to confirm it</Badge>) },
    { key: "since", title: "Claimed", wide: true, render: (r) => <Time at={r.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (r) => (
        <Button small kind="quiet" aria-label={`Give up ${r.key}`} onClick={() => void remove(r)}>
          Give up
        </Button>
      ),
    },
  ];
  return (
    <Section
      title="Numbers and repositories"
      actions={
        <Button small icon="plus" onClick={() => setAdding(true)}>
          Claim
        </Button>
      }
    >
      {routes.error ? (
        <ErrorPanel error={routes.error} retry={routes.reload} />
      ) : (
        <Table label="Numbers and repositories" columns={columns} rows={routes.data?.routes ?? []} rowKey={(r) => `${r.kind}/${r.key}`} empty={<Empty title="None is claimed." />} />
      )}
      <CopyField label="Address for GitHub" value={`${location.origin}/vcs1`} />
      <CopyField label="Address for Twilio" value={`${location.origin}/support/sms/inbound`} />
      {adding && (
        <RouteDialog
          onClose={() => setAdding(false)}
          onDone={() => {
            setAdding(false);
            routes.reload();
          }}
        />
      )}
    </Section>
  );
}

export default function InboundPage() {
  if (!useRights().admin) return <AdminsOnly title="Inbound" />;
  return (
    <Page title="Inbound" subtitle="Calls of chats, helpdesks, telephones and repositories.">
      <Sources />
      <Routes />
    </Page>
  );
}
