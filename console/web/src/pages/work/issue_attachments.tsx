// The files of an issue. They are read with the console's header, so they are fetched and
// shown from memory.

import { useEffect, useState } from "preact/hooks";
import { consoleHeader, usePages } from "../../api";
import type { Attachment } from "../../types";
import { Button } from "../../ui/button";
import { Section } from "../../ui/page";
import { ErrorPanel } from "../../ui/states";
import { wsPath } from "../../workspace";

function useContent(id: string): { address: string | null; failed: boolean } {
  const [state, setState] = useState<{ address: string | null; failed: boolean }>({ address: null, failed: false });
  useEffect(() => {
    const control = new AbortController();
    let address: string | null = null;
    fetch(wsPath("/attachments/" + id), { headers: consoleHeader, credentials: "same-origin", signal: control.signal })
      .then(async (answer) => {
        if (!answer.ok) throw new Error("status " + answer.status);
        const content = await answer.blob();
        if (control.signal.aborted) return;
        address = URL.createObjectURL(content);
        setState({ address, failed: false });
      })
      .catch(() => control.signal.aborted || setState({ address: null, failed: true }));
    return () => {
      control.abort();
      if (address) URL.revokeObjectURL(address);
    };
  }, [id]);
  return state;
}

function sizeOf(bytes: number): string {
  return bytes < 1024 ? `${bytes} B` : bytes < 1024 * 1024 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function File({ file }: { file: Attachment }) {
  const { address, failed } = useContent(file.id);
  return (
    <li class="attachment">
      {address ? (
        <a href={address} download={file.name}>
          <img src={address} alt={file.name} loading="lazy" />
        </a>
      ) : (
        <div class="attachment-wait">{failed ? "Could not be read" : ""}</div>
      )}
      <span class="clip" title={file.name}>
        {file.name}
      </span>
      <span class="muted">{sizeOf(file.size)}</span>
    </li>
  );
}

export function IssueAttachments({ issueId }: { issueId: string }) {
  const list = usePages<Attachment>(wsPath(`/issues/${issueId}/attachments`), "attachments", { limit: 12 });
  if (list.items.length === 0 && !list.error) return null;
  return (
    <Section title="Attachments">
      {list.error && <ErrorPanel error={list.error} retry={list.reload} />}
      <ul class="attachments">
        {list.items.map((file) => (
          <File key={file.id} file={file} />
        ))}
      </ul>
      {list.more && (
        <Button small onClick={list.loadMore} busy={list.loading}>
          Show more
        </Button>
      )}
    </Section>
  );
}
