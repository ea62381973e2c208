// Texts that are typed and not sent yet. They outlive reloads, failed requests and a new
// sign-in: they are kept in the tab's session storage.

import { useEffect, useState } from "preact/hooks";

const prefix = "switchyard.draft.";
const most = 50;

export function readDraft(name: string): string | null {
  try {
    return sessionStorage.getItem(prefix + name);
  } catch {
    return null;
  }
}

export function writeDraft(name: string, text: string | null): void {
  try {
    if (text === null) {
      sessionStorage.removeItem(prefix + name);
      return;
    }
    const kept = Object.keys(sessionStorage).filter((key) => key.startsWith(prefix));
    if (kept.length >= most && !kept.includes(prefix + name)) sessionStorage.removeItem(kept[0]!);
    sessionStorage.setItem(prefix + name, text);
  } catch {
    // Full or switched off: the text is kept in the page alone.
  }
}

/** A text with a name, its setter, and clear, which forgets it once it is sent. */
export function useDraft(name: string, first = ""): [string, (text: string) => void, () => void] {
  const [state, setState] = useState({ name, text: readDraft(name) ?? first });
  useEffect(() => {
    if (state.name !== name) setState({ name, text: readDraft(name) ?? first });
  }, [name]);
  const text = state.name === name ? state.text : (readDraft(name) ?? first);
  return [
    text,
    (next) => {
      setState({ name, text: next });
      writeDraft(name, next === first ? null : next);
    },
    () => {
      setState({ name, text: first });
      writeDraft(name, null);
    },
  ];
}

export function hasDraft(name: string): boolean {
  return readDraft(name) !== null;
}
