// Choosing an issue by typing words of its title or its identifier.

import { useEffect, useState } from "preact/hooks";
import { api } from "../../api";
import type { Issue } from "../../types";
import { Combobox } from "../../ui/combobox";
import { StatusIcon } from "../../ui/marks";
import { wsPath } from "../../workspace";

interface IssuePickProps {
  label: string;
  placeholder: string;
  /** The words of the choice of nothing, where that may be chosen. */
  none?: string;
  /** An issue that can't be chosen. */
  except?: string;
  onPick(issue: Issue | null): void;
  class?: string;
  disabled?: boolean;
}

const typingPause = 200;

export function IssuePick({ label, placeholder, none, except, onPick, class: more, disabled }: IssuePickProps) {
  const [text, setText] = useState<string | null>(null);
  const [found, setFound] = useState<Issue[]>([]);
  useEffect(() => {
    if (text === null) return;
    const control = new AbortController();
    const timer = setTimeout(() => {
      api.get<{ issues: Issue[] }>(wsPath("/issues"), { search: text, limit: 20 }, control.signal).then(
        (page) => setFound(page.issues.filter((issue) => issue.id !== except)),
        () => undefined, // The list stays as it was; typing tries again.
      );
    }, typingPause);
    return () => {
      clearTimeout(timer);
      control.abort();
    };
  }, [text, except]);
  return (
    <Combobox
      label={label}
      placeholder={placeholder}
      none={none}
      value={null}
      disabled={disabled}
      class={more}
      onSearch={setText}
      options={found.map((issue) => ({ value: issue.id, label: `${issue.identifier} ${issue.title}`, icon: <StatusIcon status={issue.status} /> }))}
      onChange={(id: string | null) => onPick(found.find((issue) => issue.id === id) ?? null)}
    />
  );
}
