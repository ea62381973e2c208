// The labels of issues.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { refresh, wsPath } from "../../workspace";
import type { Label } from "../../types";
import { Button, type Column, Empty, Field, LabelChip, Page, TextArea, TextInput, toast } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { askAndSend } from "./acts";
import { editColumn } from "./edit_column";

const firstColor = "#5e6ad2";

function LabelDialog({ label, onDone, onClose }: { label: Label | null; onDone(): void; onClose(): void }) {
  const [name, setName] = useState(label?.name ?? "");
  const [color, setColor] = useState(label?.color ?? firstColor);
  const [description, setDescription] = useState(label?.description ?? "");
  const act = useAct();
  const submit = async () => {
    const body = { name: name.trim(), color, description: description.trim() || null };
    const done = await act.run(body, (key) => api.send(label ? "PATCH" : "POST", label ? wsPath(`/labels/${label.id}`) : wsPath("/labels"), body, { key }));
    if (!done) return;
    toast(label ? "The label is changed." : "The label is made.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title={label ? `Change ${label.name}` : "New label"}
      action={label ? "Save" : "Make label"}
      act={act}
      fields={["name", "color", "description"]}
      incomplete={name.trim() === ""}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} data-autofocus />
      </Field>
      <Field label="Colour" error={faultOf(act.error, "color")}>
        <TextInput type="color" class="input-color" value={color} onInput={setColor} />
      </Field>
      <Field label="Description" error={faultOf(act.error, "description")}>
        <TextArea value={description} onInput={setDescription} rows={2} maxLength={2000} />
      </Field>
    </FormDialog>
  );
}

export default function LabelsPage() {
  const rights = useRights();
  const labels = usePages<Label>(wsPath("/labels"), "labels", { limit: 100 });
  const [editing, setEditing] = useState<Label | null | undefined>(undefined);
  const reload = () => {
    labels.reload();
    refresh("labels");
  };
  const remove = async (label: Label) => {
    const done = await askAndSend(
      { title: `Delete ${label.name}?`, text: "Issues keep its id, and filters still find them by it.", action: "Delete label", danger: true },
      "DELETE",
      wsPath(`/labels/${label.id}`),
      "The label is deleted.",
    );
    if (done) reload();
  };
  const columns: Column<Label>[] = [
    { key: "name", title: "Label", render: (l) => <LabelChip name={l.name} color={l.color} /> },
    { key: "description", title: "Description", wide: true, render: (l) => l.description ?? "" },
    editColumn(rights.write, setEditing, remove),
  ];
  return (
    <Page
      title="Labels"
      actions={
        rights.write && (
          <Button kind="primary" icon="plus" onClick={() => setEditing(null)}>
            New label
          </Button>
        )
      }
    >
      <PagedTable label="Labels" pages={labels} columns={columns} rowKey={(l) => l.id} empty={<Empty title="There are no labels yet." />} />
      {editing !== undefined && (
        <LabelDialog
          label={editing}
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
