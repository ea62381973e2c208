// Concurrency keys: how many sessions hold each, how many wait for it, and its limit.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import { wsPath } from "../../workspace";
import type { ConcurrencyLimit, QueueOfKey } from "../../types_agents";
import { Button, type Column, confirm, Empty, Field, Section, Table, TextInput, toast, toastFailure } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { useRights } from "../rights";

const keyForm = /^[!-~]{1,128}$/;

function LimitDialog({ of, onDone, onClose }: { of: ConcurrencyLimit | null; onDone(): void; onClose(): void }) {
  const [key, setKey] = useState(of?.key ?? "");
  const [limit, setLimit] = useState(String(of?.limit ?? 1));
  const act = useAct();
  const n = Number(limit);
  const wrong = !(Number.isInteger(n) && n >= 1 && n <= 10_000);
  const submit = async () => {
    const done = await act.run({ key, n }, (id) => api.send("PUT", wsPath(`/agent/limits/${encodeURIComponent(key)}`), { limit: n }, { key: id }));
    if (!done) return;
    toast("The limit is set.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title={of ? "Change a limit" : "Set the limit of a key"}
      action="Set limit"
      act={act}
      fields={["key", "limit"]}
      incomplete={wrong || !keyForm.test(key)}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Key" hint="Such as repo:acme/site. Up to 128 visible ASCII characters." error={faultOf(act.error, "key")}>
        <TextInput value={key} onInput={setKey} disabled={of !== null} />
      </Field>
      <Field label="Sessions at the same time" error={wrong && limit !== "" ? "Must be a whole number from 1 to 10,000." : faultOf(act.error, "limit")}>
        <TextInput value={limit} onInput={setLimit} inputMode="numeric" />
      </Field>
    </FormDialog>
  );
}

interface KeyRow extends QueueOfKey {
  /** Is set if an admin has set the limit; else it is 1. */
  set: boolean;
}

export function ConcurrencyKeys({ keys }: { keys: QueueOfKey[] }) {
  const rights = useRights();
  const limits = useRead<{ limits: ConcurrencyLimit[] }>(wsPath("/agent/limits"));
  const [editing, setEditing] = useState<ConcurrencyLimit | null | undefined>(undefined);
  const set = new Map((limits.data?.limits ?? []).map((l) => [l.key, l.limit]));
  const rows: KeyRow[] = keys.map((k) => ({ ...k, set: set.has(k.key) }));
  for (const [key, limit] of set) {
    if (!keys.some((k) => k.key === key)) rows.push({ key, limit, running: 0, waiting: 0, set: true });
  }
  if (rows.length === 0 && !rights.admin) return null;

  const remove = async (key: string) => {
    const yes = await confirm({ title: "Remove the limit?", text: `One session at a time may hold ${key} from then on.`, action: "Remove limit" });
    if (!yes) return;
    try {
      await api.send("DELETE", wsPath(`/agent/limits/${encodeURIComponent(key)}`));
      limits.reload();
    } catch (error) {
      toastFailure(error);
    }
  };

  const columns: Column<KeyRow>[] = [
    { key: "key", title: "Key", render: (r) => <code>{r.key}</code> },
    { key: "held", title: "Held", render: (r) => `${r.running} of ${r.limit}` },
    { key: "waiting", title: "Waiting", render: (r) => r.waiting },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (r) =>
        rights.admin && (
          <span class="row row-end">
            <Button small onClick={() => setEditing({ key: r.key, limit: r.limit })}>
              Change limit
            </Button>
            {r.set && (
              <Button small kind="quiet" onClick={() => void remove(r.key)}>
                Remove
              </Button>
            )}
          </span>
        ),
    },
  ];
  return (
    <Section
      title="Concurrency keys"
      actions={
        rights.admin && (
          <Button small icon="plus" onClick={() => setEditing(null)}>
            Set limit
          </Button>
        )
      }
    >
      <Table label="Concurrency keys" columns={columns} rows={rows} rowKey={(r) => r.key} empty={<Empty title="No session holds a key." />} />
      {editing !== undefined && (
        <LimitDialog
          of={editing}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            limits.reload();
          }}
        />
      )}
    </Section>
  );
}
