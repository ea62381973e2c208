import type { ComponentChildren } from "preact";
import { useCallback, useContext, useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { FieldContext } from "./field";
import { Icon } from "./icons";
import { Popup } from "./popup";

export interface Option {
  value: string;
  label: string;
  icon?: ComponentChildren;
  hint?: string;
}

interface ComboboxProps {
  /** The name of the choice, such as "Assignee". */
  label: string;
  options: Option[];
  /** The chosen value; a list where multiple is set. */
  value: string | string[] | null;
  onChange(value: any): void;
  multiple?: boolean;
  placeholder?: string;
  /** The words of the choice of nothing; without them nothing can't be chosen. */
  none?: string;
  disabled?: boolean;
  /** Called with the typed text, where the caller finds the options. */
  onSearch?(text: string): void;
  class?: string;
}

const mostShown = 100;

/** A button that opens a list of options which typing narrows. */
export function Combobox(props: ComboboxProps) {
  const { label, options, value, onChange, multiple, placeholder, none, disabled, onSearch } = props;
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const field = useContext(FieldContext);
  const close = useCallback(() => setOpen(false), []);
  const chosen = multiple ? ((value as string[] | null) ?? []) : value ? [value as string] : [];
  const names = chosen.map((v) => options.find((o) => o.value === v)?.label ?? v);
  const first = multiple ? undefined : options.find((o) => o.value === chosen[0]);
  return (
    <>
      <button
        ref={button}
        id={field?.id}
        type="button"
        class={props.class ?? "input combobox"}
        disabled={disabled}
        aria-haspopup="listbox"
        aria-expanded={open}
        aria-label={`${label}: ${names.length ? names.join(", ") : (none ?? placeholder ?? "none")}`}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            event.preventDefault();
            setOpen(true);
          }
        }}
      >
        {first?.icon}
        <span class={names.length ? "grow clip" : "grow clip muted"}>{names.length ? names.join(", ") : (placeholder ?? none ?? "None")}</span>
        <Icon name="down" size={12} />
      </button>
      {open && (
        <Popup anchor={button} onClose={close} width={280}>
          <Choices
            label={label}
            options={options}
            chosen={chosen}
            none={none}
            multiple={multiple}
            onSearch={onSearch}
            onPick={(picked) => {
              if (multiple && picked !== null) {
                onChange(chosen.includes(picked) ? chosen.filter((v) => v !== picked) : [...chosen, picked]);
                return;
              }
              onChange(multiple ? [] : picked);
              setOpen(false);
              button.current?.focus();
            }}
          />
        </Popup>
      )}
    </>
  );
}

interface ChoicesProps {
  label: string;
  options: Option[];
  chosen: string[];
  none?: string;
  multiple?: boolean;
  onSearch?(text: string): void;
  onPick(value: string | null): void;
}

function Choices({ label, options, chosen, none, multiple, onSearch, onPick }: ChoicesProps) {
  const [text, setText] = useState("");
  const [active, setActive] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();

  useEffect(() => {
    input.current?.focus();
    onSearch?.("");
  }, []);

  const shown = useMemo(() => {
    const want = text.trim().toLowerCase();
    const found = onSearch || want === "" ? options : options.filter((o) => o.label.toLowerCase().includes(want) || o.hint?.toLowerCase().includes(want));
    const rows: { value: string | null; label: string; icon?: ComponentChildren; hint?: string }[] = found.slice(0, mostShown);
    return none !== undefined && want === "" ? [{ value: null, label: none }, ...rows] : rows;
  }, [options, text, none]);
  const at = Math.min(active, shown.length - 1);

  useEffect(() => {
    list.current?.querySelector("[data-active=true]")?.scrollIntoView({ block: "nearest" });
  }, [at]);

  const keys = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setActive(Math.min(at + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setActive(Math.max(at - 1, 0));
    else if (event.key === "Home") setActive(0);
    else if (event.key === "End") setActive(shown.length - 1);
    else if (event.key === "Enter") {
      const row = shown[at];
      if (row) onPick(row.value);
    } else return;
    event.preventDefault();
  };

  return (
    <div class="choices">
      <input
        ref={input}
        class="choices-input"
        role="combobox"
        aria-label={label}
        aria-expanded="true"
        aria-controls={id}
        aria-autocomplete="list"
        aria-activedescendant={shown.length ? `${id}-${at}` : undefined}
        placeholder="Type to find"
        autocomplete="off"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setActive(0);
          onSearch?.(event.currentTarget.value);
        }}
        onKeyDown={keys}
      />
      <ul role="listbox" id={id} ref={list} class="choices-list" aria-label={label} aria-multiselectable={multiple ? "true" : undefined}>
        {shown.map((row, i) => {
          const on = row.value === null ? chosen.length === 0 : chosen.includes(row.value);
          return (
            <li key={row.value ?? "none"} id={`${id}-${i}`} role="option" aria-selected={on} data-active={i === at} class="choice" onPointerMove={() => setActive(i)} onClick={() => onPick(row.value)}>
              <span class="choice-mark">{on && <Icon name="check" size={14} />}</span>
              {row.icon}
              <span class="grow clip">{row.label}</span>
              {row.hint && <span class="muted clip">{row.hint}</span>}
            </li>
          );
        })}
      </ul>
      {shown.length === 0 && <p class="choices-empty muted">Nothing found.</p>}
    </div>
  );
}
