// The start page: it goes on to the workspace used last, or lists those there are.

import { useEffect, useState } from "preact/hooks";
import { api, asFailure, type Failure } from "../api";
import { usePages } from "../reads";
import { A, navigate, useRoute } from "../router";
import { loadSession, type Session } from "../session";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Field, TextInput } from "../ui/field";
import { Page } from "../ui/page";
import { Empty, ErrorPanel, Spinner } from "../ui/states";
import type { Workspace } from "../workspace";

export function Start({ session, last }: { session: Session; last: Workspace | null }) {
  const { query } = useRoute();
  const go = last !== null && query.choose === undefined;
  useEffect(() => {
    if (go) navigate(`/console/${last!.slug}/issues`, { replace: true });
  }, [go]);
  const list = usePages<Workspace>(go ? null : "/workspaces", "workspaces", { limit: 100 });
  const [making, setMaking] = useState(false);
  if (go) return <Spinner />;
  return (
    <Page
      title="Workspaces"
      actions={
        session.actorType === "agent" ? null : (
          <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
            New workspace
          </Button>
        )
      }
    >
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      {list.loading && list.items.length === 0 && <Spinner />}
      {!list.loading && !list.error && list.items.length === 0 && <Empty title="There is no workspace yet." />}
      <ul class="card-list">
        {list.items.map((w) => (
          <li key={w.id}>
            <A href={`/console/${w.slug}/issues`} class="card">
              <strong>{w.name}</strong>
              <span class="muted">{w.slug}</span>
            </A>
          </li>
        ))}
      </ul>
      {list.more && (
        <Button onClick={list.loadMore} busy={list.loading}>
          Show more
        </Button>
      )}
      {making && <MakeWorkspace onClose={() => setMaking(false)} />}
    </Page>
  );
}

function MakeWorkspace({ onClose }: { onClose(): void }) {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState("");
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const submit = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const { data } = await api.send<Workspace>("POST", "/workspaces", { name, slug, key: key || undefined });
      await loadSession();
      navigate(`/console/${data.slug}/issues`);
      onClose();
    } catch (error) {
      setFailure(asFailure(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="New workspace"
      onClose={onClose}
      footer={
        <Button kind="primary" busy={busy} disabled={!name.trim() || !slug} onClick={() => void submit()}>
          Make the workspace
        </Button>
      }
    >
      <Field label="Name">
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <Field label="Address" hint="Small letters, digits and dashes.">
        <TextInput value={slug} onInput={setSlug} maxLength={64} autocomplete="off" />
      </Field>
      <Field label="Key" hint="The first team's issues are numbered with it, such as ACME-1. Left empty, it is made of the address.">
        <TextInput value={key} onInput={setKey} maxLength={10} autocomplete="off" />
      </Field>
      {failure && <ErrorPanel error={failure} retry={() => void submit()} />}
    </Dialog>
  );
}
