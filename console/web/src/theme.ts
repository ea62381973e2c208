// The theme, light or dark: the system's, unless the person chose one.

import { makeStore, useStore } from "./store";

export type Theme = "system" | "light" | "dark";

const key = "switchyard.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

const theme = makeStore<Theme>(stored());

export const useTheme = (): Theme => useStore(theme);

export function applyTheme(next: Theme = theme.get()): void {
  theme.set(next);
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "system") localStorage.removeItem(key);
    else localStorage.setItem(key, next);
  } catch {
    // The choice lasts for this page alone where storage is off.
  }
}
