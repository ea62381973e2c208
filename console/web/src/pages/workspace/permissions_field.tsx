// The choice of a credential's permissions.

import { Checkbox } from "../../ui";

const words = [
  { word: "read", help: "Read everything that the actor sees." },
  { word: "write", help: "Change issues, teams, labels, projects and sessions." },
  { word: "admin", help: "Change settings, where the actor's role allows it." },
  { word: "issues:read", help: "Read issues alone." },
  { word: "issues:write", help: "Change issues alone." },
  { word: "sessions:read", help: "Read sessions alone." },
  { word: "sessions:write", help: "Work in sessions alone: what an agent's process needs." },
];

interface PermissionsFieldProps {
  chosen: string[];
  onChange(chosen: string[]): void;
  error?: string;
}

export function PermissionsField({ chosen, onChange, error }: PermissionsFieldProps) {
  return (
    <fieldset class="fieldset">
      <legend>Permissions</legend>
      {words.map(({ word, help }) => (
        <Checkbox
          key={word}
          label={<code>{word}</code>}
          hint={help}
          checked={chosen.includes(word)}
          onChange={(on) => onChange(words.map((w) => w.word).filter((w) => (w === word ? on : chosen.includes(w))))}
        />
      ))}
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}
