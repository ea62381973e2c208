// The rarer acts on an issue: copy, share, restrict, bring back, delete.

import { useState } from "preact/hooks";
import { api } from "../../api";
import { navigate } from "../../router";
import type { Issue } from "../../types";
import { confirm } from "../../ui/dialog";
import { Menu, type MenuItem } from "../../ui/menu";
import { toast, toastFailure } from "../../ui/toast";
import { pagePath, wsPath } from "../../workspace";
import { AccessDialog } from "./access_dialog";
import { tellDeleted } from "./issue_bus";
import { ShareDialog } from "./share_dialog";

interface IssueMenuProps {
  issue: Issue;
  etag: string | null;
  onChanged(issue: Issue): void;
}

export function copyText(text: string, words: string): void {
  const copied = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject(new Error("no clipboard"));
  copied.then(
    () => toast(words, { kind: "success" }),
    () => toast("The browser does not let the console copy here: " + text, { kind: "error" }),
  );
}

export function IssueMenu({ issue, etag, onChanged }: IssueMenuProps) {
  const [open, setOpen] = useState<"share" | "access" | null>(null);

  const unarchive = async () => {
    try {
      const { data } = await api.send<Issue>("POST", wsPath(`/issues/${issue.id}/unarchive`));
      onChanged(data);
      toast("The issue is back.", { kind: "success" });
    } catch (error) {
      toastFailure(error, () => void unarchive());
    }
  };
  const remove = async () => {
    const sure = await confirm({ title: `Delete ${issue.identifier}?`, text: "Its comments, history and relations go with it, for ever. Its sub-issues stay.", action: "Delete", danger: true });
    if (!sure) return;
    try {
      await api.send("DELETE", wsPath("/issues/" + issue.id), undefined, { ifMatch: etag });
      tellDeleted(issue.id);
      toast(`${issue.identifier} was deleted.`);
      navigate(pagePath("issues"));
    } catch (error) {
      toastFailure(error);
    }
  };

  const items: MenuItem[] = [
    { label: "Copy the identifier", icon: "copy", onSelect: () => copyText(issue.identifier ?? issue.id, "Copied.") },
    { label: "Copy the address", icon: "link", onSelect: () => copyText(location.origin + pagePath("issues/" + (issue.identifier ?? issue.id)), "Copied.") },
    { label: "Share by link", icon: "out", onSelect: () => setOpen("share") },
    { label: "Access", icon: "people", onSelect: () => setOpen("access") },
  ];
  if (issue.archivedAt) items.push({ label: "Bring it back", icon: "refresh", onSelect: () => void unarchive() });
  items.push({ label: "Delete", icon: "trash", danger: true, onSelect: () => void remove() });

  return (
    <>
      <Menu label="More acts" items={items} />
      {open === "share" && <ShareDialog issue={issue} onClose={() => setOpen(null)} />}
      {open === "access" && <AccessDialog issue={issue} onClose={() => setOpen(null)} />}
    </>
  );
}
