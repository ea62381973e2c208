// Keys of the page, and the list of them that "?" opens.

import { useEffect, useRef } from "preact/hooks";
import { makeStore, useStore } from "./store";
import { Dialog } from "./ui/dialog";

export type KeyMap = Record<string, { help: string; run(event: KeyboardEvent): void } | undefined>;

interface Group {
  title: string;
  keys: KeyMap;
}

const groups: Group[] = [];
const helpOpen = makeStore(false);
/** A first key, such as "g", waits so long for the second. */
const chordTime = 1200;
let chord: { key: string; at: number } | null = null;

function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !/^(checkbox|radio|button|submit)$/.test(target.type);
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName);
}

function nameOf(event: KeyboardEvent): string {
  const mod = event.ctrlKey || event.metaKey ? "mod+" : "";
  return mod + (event.key === " " ? "space" : event.key.length === 1 ? event.key : event.key.toLowerCase());
}

function find(name: string): KeyMap[string] {
  for (let i = groups.length - 1; i >= 0; i--) {
    const found = groups[i]!.keys[name];
    if (found) return found;
  }
  return undefined;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.altKey) return;
  const name = nameOf(event);
  if (typing(event.target) && !name.startsWith("mod+")) return;
  if (document.querySelector("dialog[open]")) return;
  const pair = chord && Date.now() - chord.at < chordTime ? find(chord.key + " " + name) : undefined;
  chord = null;
  const found = pair ?? find(name);
  if (found) {
    event.preventDefault();
    found.run(event);
    return;
  }
  if (name === "?") {
    event.preventDefault();
    helpOpen.set(true);
    return;
  }
  if (groups.some((group) => Object.keys(group.keys).some((key) => key.startsWith(name + " ")))) chord = { key: name, at: Date.now() };
}

addEventListener("keydown", onKey);

/**
 * Binds keys while the component is shown: "c", "g i", "mod+enter", "arrowdown", "space".
 * They do nothing while somebody types into an input, except those with mod.
 */
export function useKeys(title: string, keys: KeyMap): void {
  const group = useRef<Group>({ title, keys });
  group.current.keys = keys;
  useEffect(() => {
    const mine = group.current;
    groups.push(mine);
    return () => {
      groups.splice(groups.indexOf(mine), 1);
    };
  }, []);
}

export function showKeys(): void {
  helpOpen.set(true);
}

const words: Record<string, string> = { arrowdown: "↓", arrowup: "↑", arrowleft: "←", arrowright: "→", enter: "Enter", escape: "Esc", space: "Space", "mod+enter": "Ctrl Enter" };

export function KeyHelp() {
  if (!useStore(helpOpen)) return null;
  return (
    <Dialog title="Keys" onClose={() => helpOpen.set(false)}>
      <div class="key-help" role="group" aria-label="All keys" tabIndex={0}>
        {groups.map((group, i) => {
          const keys = Object.entries(group.keys).filter(([, entry]) => entry?.help);
          return keys.length === 0 ? null : (
            <section key={group.title + i} aria-label={group.title}>
              <h3>{group.title}</h3>
              <dl>
                {keys.map(([key, entry]) => (
                  <div key={key} class="key-row">
                    <dt>
                      {key.split(" ").map((part) => (
                        <kbd key={part}>{words[part] ?? part}</kbd>
                      ))}
                    </dt>
                    <dd>{entry!.help}</dd>
                  </div>
                ))}
              </dl>
            </section>
          );
        })}
        <p class="muted">
          <kbd>?</kbd> opens this list. <kbd>Esc</kbd> closes an open dialog or list.
        </p>
      </div>
    </Dialog>
  );
}
