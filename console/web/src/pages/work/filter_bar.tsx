// The bar over a list of issues: search, and a chip for each filter that is set.

import { useEffect, useState } from "preact/hooks";
import { setQuery, useRoute } from "../../router";
import { Button, IconButton } from "../../ui/button";
import { Combobox, type Option } from "../../ui/combobox";
import { Icon } from "../../ui/icons";
import { Menu } from "../../ui/menu";
import { useCycles, useLabels, useProjects, useTeams } from "../../workspace";
import { activeFilters, filters, searchKey, type Filter } from "./filters";
import { useAssigneeOptions } from "./pickers";

const typingPause = 250;

function SearchBox({ value }: { value: string }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => setQuery({ [searchKey]: text.trim() || null }), typingPause);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="search-box">
      <Icon name="search" size={14} />
      <span class="visually-hidden">Search in these issues</span>
      <input class="search-input" type="search" placeholder="Search" value={text} maxLength={1000} onInput={(event) => setText(event.currentTarget.value)} />
    </label>
  );
}

function useChoices(filter: Filter): Option[] {
  const assignees = useAssigneeOptions();
  const teams = useTeams();
  const projects = useProjects();
  const cycles = useCycles();
  const labels = useLabels();
  switch (filter.from) {
    case "assignees":
      return assignees;
    case "teams":
      return teams.map((t) => ({ value: t.id, label: t.name, hint: t.key }));
    case "projects":
      return projects.map((p) => ({ value: p.id, label: p.name }));
    case "cycles":
      return cycles.map((c) => ({ value: c.id, label: c.name }));
    case "labels":
      return labels.map((l) => ({ value: l.id, label: l.name }));
    default:
      return filter.choices ?? [];
  }
}

const yesOrNo: Option[] = [
  { value: "true", label: "Yes" },
  { value: "false", label: "No" },
];

function Chip({ filter, value, onRemove }: { filter: Filter; value: string; onRemove(): void }) {
  const choices = useChoices(filter);
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const set = (next: string | null) => (next === null ? onRemove() : setQuery({ [filter.key]: next }));
  return (
    <span class="filter-chip" role="group" aria-label={"Filter: " + filter.title}>
      <span class="filter-name">{filter.title}</span>
      {filter.kind === "text" ? (
        <input
          class="filter-text"
          aria-label={filter.title}
          value={text}
          maxLength={255}
          placeholder="type a value"
          onInput={(event) => setText(event.currentTarget.value)}
          onBlur={() => set(text.trim() || null)}
          onKeyDown={(event) => event.key === "Enter" && set(text.trim() || null)}
        />
      ) : (
        <Combobox label={filter.title} options={filter.kind === "boolean" ? yesOrNo : choices} value={value || null} placeholder="choose" onChange={set} class="filter-pick" />
      )}
      <IconButton label={"Remove the filter " + filter.title} icon="close" onClick={onRemove} />
    </span>
  );
}

export function FilterBar({ without = [] }: { without?: string[] }) {
  const { query } = useRoute();
  const active = activeFilters(query);
  // A filter that was just added has no value yet.
  const [added, setAdded] = useState<string | null>(null);
  const offered = filters.filter((f) => !without.includes(f.key));
  const shown = offered.filter((f) => active[f.key] !== undefined || f.key === added);
  const clear: Record<string, null> = { [searchKey]: null };
  for (const filter of filters) clear[filter.key] = null;
  return (
    <div class="filter-bar" role="search" aria-label="Filters">
      <SearchBox value={active[searchKey] ?? ""} />
      {shown.map((filter) => (
        <Chip
          key={filter.key}
          filter={filter}
          value={active[filter.key] ?? ""}
          onRemove={() => {
            if (added === filter.key) setAdded(null);
            setQuery({ [filter.key]: null });
          }}
        />
      ))}
      <Menu
        label="Add a filter"
        items={offered
          .filter((f) => !shown.includes(f))
          .map((f) => ({
            label: f.title,
            onSelect: () => {
              setAdded(f.key);
              if (f.kind === "boolean") setQuery({ [f.key]: "true" });
            },
          }))}
        class="button button-quiet"
      >
        <Icon name="filter" />
        Filter
      </Menu>
      {Object.keys(active).length > 0 && (
        <Button
          kind="quiet"
          small
          onClick={() => {
            setAdded(null);
            setQuery(clear);
          }}
        >
          Clear
        </Button>
      )}
    </div>
  );
}
