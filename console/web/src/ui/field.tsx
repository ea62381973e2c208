// Inputs with a label, a hint and an error that assistive technology connects to them.

import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext, useId } from "preact/hooks";

interface FieldInfo {
  id: string;
  describedBy?: string;
  invalid: boolean;
}

export const FieldContext = createContext<FieldInfo | null>(null);

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | null;
  children: ComponentChildren;
  /** Shows the label to screen readers alone. */
  hidden?: boolean;
}

/** A label with the one input in it: <Field label="Name"><TextInput .../></Field>. */
export function Field({ label, hint, error, children, hidden }: FieldProps) {
  const id = useId();
  const described = [hint ? id + "-hint" : "", error ? id + "-error" : ""].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label class={hidden ? "visually-hidden" : "field-label"} for={id}>
        {label}
      </label>
      <FieldContext.Provider value={{ id, describedBy: described || undefined, invalid: Boolean(error) }}>{children}</FieldContext.Provider>
      {hint && (
        <p class="field-hint" id={id + "-hint"}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={id + "-error"}>
          {error}
        </p>
      )}
    </div>
  );
}

function useField() {
  const field = useContext(FieldContext);
  if (!field) return {};
  return { id: field.id, "aria-describedby": field.describedBy, "aria-invalid": field.invalid ? ("true" as const) : undefined };
}

type InputProps = Omit<JSX.InputHTMLAttributes<HTMLInputElement>, "onInput" | "value"> & { value: string; onInput(text: string): void };

export function TextInput({ onInput, class: more, ...rest }: InputProps) {
  return <input type="text" {...useField()} {...rest} class={`input ${more ?? ""}`} onInput={(event) => onInput(event.currentTarget.value)} />;
}

type AreaProps = Omit<JSX.TextareaHTMLAttributes<HTMLTextAreaElement>, "onInput" | "value"> & { value: string; onInput(text: string): void };

export function TextArea({ onInput, class: more, ...rest }: AreaProps) {
  return <textarea rows={4} {...useField()} {...rest} class={`input ${more ?? ""}`} onInput={(event) => onInput(event.currentTarget.value)} />;
}

interface SelectProps extends Omit<JSX.SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> {
  value: string;
  onChange(value: string): void;
  options: { value: string; label: string; disabled?: boolean }[];
}

export function Select({ value, onChange, options, class: more, ...rest }: SelectProps) {
  return (
    <select {...useField()} {...rest} class={`input ${more ?? ""}`} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {options.map((option) => (
        <option key={option.value} value={option.value} disabled={option.disabled} selected={option.value === value}>
          {option.label}
        </option>
      ))}
    </select>
  );
}

interface CheckboxProps {
  label: ComponentChildren;
  checked: boolean;
  onChange(checked: boolean): void;
  disabled?: boolean;
  hint?: string;
}

export function Checkbox({ label, checked, onChange, disabled, hint }: CheckboxProps) {
  const id = useId();
  return (
    <div class="checkbox">
      <input type="checkbox" id={id} checked={checked} disabled={disabled} aria-describedby={hint ? id + "-hint" : undefined} onChange={(event) => onChange(event.currentTarget.checked)} />
      <label for={id}>{label}</label>
      {hint && (
        <p class="field-hint" id={id + "-hint"}>
          {hint}
        </p>
      )}
    </div>
  );
}
