// A link by which people without an account read one issue.

import { useState } from "preact/hooks";
import { api, useRead } from "../../api";
import type { Issue } from "../../types";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Field, Select, TextInput } from "../../ui/field";
import { ErrorPanel, Spinner } from "../../ui/states";
import { Time } from "../../ui/time";
import { wsPath } from "../../workspace";
import { useAct } from "../act";
import { copyText } from "./issue_menu";

interface IssueShare {
  token: string;
  expiresAt: string | null;
  createdAt: string;
}

export function ShareDialog({ issue, onClose }: { issue: Issue; onClose(): void }) {
  const share = useRead<IssueShare | null>(wsPath(`/issues/${issue.id}/share`));
  const [days, setDays] = useState("7");
  const act = useAct();
  const make = () =>
    void act.run({ days }, async (key) => {
      const expiresAt = days === "" ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
      const { data } = await api.send<IssueShare>("POST", wsPath(`/issues/${issue.id}/share`), { expiresAt }, { key });
      share.set(data);
    });
  const end = () =>
    void act.run("end", async (key) => {
      await api.send("DELETE", wsPath(`/issues/${issue.id}/share/${encodeURIComponent(share.data!.token)}`), undefined, { key });
      share.set(null);
    });
  const address = share.data ? `${location.origin}/shared-issues/${issue.organizationId}/${share.data.token}` : "";
  return (
    <Dialog title={`Share ${issue.identifier}`} onClose={onClose}>
      <p>Everybody who has the link reads the title, status, priority and description as JSON, without a token. Comments stay hidden.</p>
      {share.loading && share.data === undefined && <Spinner />}
      {share.error && <ErrorPanel error={share.error} retry={share.reload} />}
      {share.data ? (
        <>
          <Field label="Link" hint={share.data.expiresAt ? <>It ends <Time at={share.data.expiresAt} plain />.</> : "It has no end."}>
            <TextInput value={address} onInput={() => undefined} readOnly class="mono" />
          </Field>
          <div class="row">
            <Button icon="copy" onClick={() => copyText(address, "Copied.")}>
              Copy
            </Button>
            <Button kind="danger" busy={act.busy} onClick={end}>
              End the link
            </Button>
          </div>
        </>
      ) : (
        share.data === null && (
          <>
            <Field label="It ends">
              <Select
                value={days}
                onChange={setDays}
                options={[
                  { value: "1", label: "after a day" },
                  { value: "7", label: "after a week" },
                  { value: "30", label: "after 30 days" },
                  { value: "", label: "never" },
                ]}
              />
            </Field>
            <div class="row">
              <Button kind="primary" busy={act.busy} onClick={make}>
                Make the link
              </Button>
            </div>
          </>
        )
      )}
      {act.error && <ErrorPanel error={act.error} />}
    </Dialog>
  );
}
