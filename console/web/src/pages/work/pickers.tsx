// The choices of an issue's fields: status, priority, assignee, labels, project, cycle, team.

import { useMemo } from "preact/hooks";
import { priorities, statuses, type Priority, type Status } from "../../types";
import { Combobox, type Option } from "../../ui/combobox";
import { Avatar, PriorityIcon, StatusIcon, priorityNames, statusNames } from "../../ui/marks";
import { useAgents, useCycles, useLabels, useMembers, useProjects, useTeams } from "../../workspace";

interface PickProps<Value> {
  value: Value;
  onChange(value: Value): void;
  disabled?: boolean;
  class?: string;
  /** Shown where nothing is chosen. */
  placeholder?: string;
}

const statusOptions: Option[] = statuses.map((status) => ({ value: status, label: statusNames[status], icon: <StatusIcon status={status} /> }));
const priorityOptions: Option[] = priorities.map((priority) => ({ value: priority, label: priorityNames[priority], icon: <PriorityIcon priority={priority} /> }));

export function StatusPick(props: PickProps<Status>) {
  return <Combobox label="Status" options={statusOptions} {...props} />;
}

export function PriorityPick(props: PickProps<Priority>) {
  return <Combobox label="Priority" options={priorityOptions} {...props} />;
}

/** Members and agents as options; an agent that is chosen gets a session. */
export function useAssigneeOptions(): Option[] {
  const members = useMembers();
  const agents = useAgents();
  return useMemo(
    () => [
      ...members.map((m) => {
        const name = m.name ?? m.email ?? "Member " + m.userId.slice(-4);
        return { value: m.userId, label: name, icon: <Avatar id={m.userId} name={name} size={18} /> };
      }),
      ...agents.map((a) => ({ value: a.id, label: a.name, hint: "agent", icon: <Avatar id={a.id} name={a.name} size={18} agent /> })),
    ],
    [members, agents],
  );
}

export function AssigneePick(props: PickProps<string | null>) {
  return <Combobox label="Assignee" options={useAssigneeOptions()} none="Nobody" {...props} />;
}

export function LabelsPick(props: PickProps<string[]>) {
  const labels = useLabels();
  const options = useMemo(
    () => {
      const known = labels.map((l) => ({ value: l.id, label: l.name }));
      const ids = new Set(labels.map((l) => l.id));
      // Labels are taken as they come, so an issue may have some that nobody registered.
      return [...known, ...props.value.filter((id) => !ids.has(id)).map((id) => ({ value: id, label: id }))];
    },
    [labels, props.value],
  );
  return <Combobox label="Labels" options={options} none="No labels" multiple {...props} />;
}

export function ProjectPick(props: PickProps<string | null>) {
  const projects = useProjects();
  const options = useMemo(() => projects.map((p) => ({ value: p.id, label: p.name })), [projects]);
  return <Combobox label="Project" options={options} none="No project" {...props} />;
}

export function CyclePick(props: PickProps<string | null>) {
  const cycles = useCycles();
  const options = useMemo(() => cycles.map((c) => ({ value: c.id, label: c.name })), [cycles]);
  return <Combobox label="Cycle" options={options} none="No cycle" {...props} />;
}

export function TeamPick(props: PickProps<string>) {
  const teams = useTeams();
  const options = useMemo(() => teams.map((t) => ({ value: t.id, label: t.name, hint: t.key })), [teams]);
  return <Combobox label="Team" options={options} {...props} />;
}
