import type { ComponentChildren, JSX } from "preact";
import { A } from "../router";
import { Icon, type IconName } from "./icons";

export type ButtonKind = "primary" | "danger" | "plain" | "quiet";

type ButtonProps = Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, "icon"> & {
  kind?: ButtonKind;
  icon?: IconName;
  /** Shows that the act is running; the button can't be pressed meanwhile. */
  busy?: boolean;
  small?: boolean;
  children?: ComponentChildren;
};

export function Button({ kind = "plain", icon, busy, small, children, disabled, class: more, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button button-${kind}${small ? " button-small" : ""} ${more ?? ""}`} disabled={busy || disabled} aria-busy={busy ? "true" : undefined}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

type IconButtonProps = Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, "label" | "icon"> & { label: string; icon: IconName };

/** A button with an icon alone. The label is its accessible name and its tooltip. */
export function IconButton({ label, icon, class: more, ...rest }: IconButtonProps) {
  return (
    <button type="button" title={label} {...rest} class={`icon-button ${more ?? ""}`} aria-label={label}>
      <Icon name={icon} />
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({ href, kind = "plain", icon, children }: { href: string; kind?: ButtonKind; icon?: IconName; children: ComponentChildren }) {
  return (
    <A href={href} class={`button button-${kind}`}>
      {icon && <Icon name={icon} />}
      {children}
    </A>
  );
}
