// The projects of the workspace, which group issues towards a goal.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { A } from "../../router";
import { pagePath, refresh, useMembers, useNames, wsPath } from "../../workspace";
import type { Project } from "../../types";
import { Button, type Column, Empty, Field, Page, Select, TextArea, TextInput, formatDate, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { firstLine } from "../agents/session_text";
import { askAndSend } from "./acts";
import { editColumn } from "./edit_column";

/** The day of a moment as a date input has it, and back. */
function dayOf(at: string | null): string {
  return at ? at.slice(0, 10) : "";
}

function momentOf(day: string): string | null {
  return day === "" ? null : `${day}T00:00:00.000Z`;
}

function ProjectDialog({ project, onDone, onClose }: { project: Project | null; onDone(): void; onClose(): void }) {
  const members = useMembers();
  const [name, setName] = useState(project?.name ?? "");
  const [description, setDescription] = useState(project?.description ?? "");
  const [lead, setLead] = useState(project?.leadId ?? "");
  const [starts, setStarts] = useState(dayOf(project?.startsAt ?? null));
  const [ends, setEnds] = useState(dayOf(project?.endsAt ?? null));
  const act = useAct();
  const submit = async () => {
    const body: Record<string, unknown> = { name: name.trim(), description: description.trim() || null, leadId: lead || null };
    // A time of day that the form does not show stays as it is.
    if (!project || dayOf(project.startsAt) !== starts) body.startsAt = momentOf(starts);
    if (!project || dayOf(project.endsAt) !== ends) body.endsAt = momentOf(ends);
    const done = await act.run(body, (key) => api.send(project ? "PATCH" : "POST", project ? wsPath(`/projects/${project.id}`) : wsPath("/projects"), body, { key }));
    if (!done) return;
    toast(project ? "The project is changed." : "The project is made.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title={project ? `Change ${project.name}` : "New project"}
      action={project ? "Save" : "Make project"}
      act={act}
      fields={["name", "description", "leadId", "startsAt", "endsAt"]}
      incomplete={name.trim() === ""}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <Field label="Description" error={faultOf(act.error, "description")}>
        <TextArea value={description} onInput={setDescription} maxLength={10000} />
      </Field>
      <Field label="Lead" error={faultOf(act.error, "leadId")}>
        <Select value={lead} onChange={setLead} options={[{ value: "", label: "Nobody" }, ...members.map((m) => ({ value: m.userId, label: m.name ?? m.email ?? m.userId }))]} />
      </Field>
      <Field label="Begins" error={faultOf(act.error, "startsAt")}>
        <TextInput type="date" value={starts} onInput={setStarts} />
      </Field>
      <Field label="Ends" error={faultOf(act.error, "endsAt")}>
        <TextInput type="date" value={ends} onInput={setEnds} />
      </Field>
    </FormDialog>
  );
}

export default function ProjectsPage() {
  const rights = useRights();
  const name = useNames();
  const projects = usePages<Project>(wsPath("/projects"), "projects", { limit: 100 });
  const [editing, setEditing] = useState<Project | null | undefined>(undefined);
  const reload = () => {
    projects.reload();
    refresh("projects");
  };
  const remove = async (project: Project) => {
    const done = await askAndSend(
      { title: `Delete ${project.name}?`, text: "Its issues stay and keep its id. Its budget goes with it.", action: "Delete project", danger: true },
      "DELETE",
      wsPath(`/projects/${project.id}`),
      "The project is deleted.",
    );
    if (done) reload();
  };
  const columns: Column<Project>[] = [
    { key: "name", title: "Project", render: (p) => <A href={pagePath(`issues?projectId=${p.id}`)}>{p.name}</A> },
    { key: "description", title: "Description", wide: true, render: (p) => firstLine(p.description ?? "", 80) },
    { key: "lead", title: "Lead", wide: true, render: (p) => (p.leadId ? name(p.leadId) : "") },
    { key: "starts", title: "Begins", wide: true, render: (p) => (p.startsAt ? formatDate(p.startsAt) : "") },
    { key: "ends", title: "Ends", render: (p) => (p.endsAt ? formatDate(p.endsAt) : "") },
    editColumn(rights.write, setEditing, remove),
  ];
  return (
    <Page
      title="Projects"
      actions={
        rights.write && (
          <Button kind="primary" icon="plus" onClick={() => setEditing(null)}>
            New project
          </Button>
        )
      }
    >
      <PagedTable label="Projects" pages={projects} columns={columns} rowKey={(p) => p.id} empty={<Empty title="There are no projects yet." />} />
      {editing !== undefined && (
        <ProjectDialog
          project={editing}
          onClose={() => setEditing(undefined)}
          onDone={() => {
            setEditing(undefined);
            reload();
          }}
        />
      )}
    </Page>
  );
}
