// The members of the workspace and their roles.

import { useState } from "preact/hooks";
import { api, usePages } from "../../api";
import { useSession } from "../../session";
import { refresh, wsPath } from "../../workspace";
import type { Member } from "../../types";
import { Avatar, Badge, Button, type Column, Empty, Field, Page, Select, TextInput, Time, toast, toastFailure } from "../../ui";
import { faultOf, useAct } from "../act";
import { FormDialog } from "../form_dialog";
import { PagedTable } from "../paged_table";
import { useRights } from "../rights";
import { askAndSend } from "./acts";

const roles = [
  { value: "admin", label: "Admin" },
  { value: "member", label: "Member" },
  { value: "guest", label: "Guest" },
];

function roleTitle(role: Member["role"]): string {
  return role.charAt(0).toUpperCase() + role.slice(1);
}

function AddMember({ onDone, onClose }: { onDone(): void; onClose(): void }) {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [role, setRole] = useState("member");
  const [userId, setUserId] = useState("");
  const act = useAct();
  const submit = async () => {
    const body: Record<string, string> = { role };
    if (email.trim()) body.email = email.trim();
    if (name.trim()) body.name = name.trim();
    if (userId.trim()) body.userId = userId.trim();
    const done = await act.run(body, (key) => api.send("POST", wsPath("/members"), body, { key }));
    if (!done) return;
    toast("The member is added.", { kind: "success" });
    onDone();
  };
  return (
    <FormDialog
      title="Add a member"
      action="Add"
      act={act}
      fields={["email", "name", "role", "userId"]}
      incomplete={email.trim() === "" && userId.trim() === "" && name.trim() === ""}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="E-mail address" error={faultOf(act.error, "email")} hint="People who sign in with the identity provider are found by it.">
        <TextInput type="email" value={email} onInput={setEmail} maxLength={254} data-autofocus />
      </Field>
      <Field label="Name" error={faultOf(act.error, "name")}>
        <TextInput value={name} onInput={setName} maxLength={200} />
      </Field>
      <Field label="Role" error={faultOf(act.error, "role")} hint="Admins change settings. Guests see public teams only.">
        <Select value={role} onChange={setRole} options={roles} />
      </Field>
      <Field label="User id" error={faultOf(act.error, "userId")} hint="Of a user of another workspace. Empty makes a new user.">
        <TextInput value={userId} onInput={setUserId} maxLength={255} />
      </Field>
    </FormDialog>
  );
}

export default function MembersPage() {
  const rights = useRights();
  const session = useSession();
  const [adding, setAdding] = useState(false);
  const members = usePages<Member>(wsPath("/members"), "members", { limit: 100 });
  const reload = () => {
    members.reload();
    refresh("members");
  };

  const changeRole = async (member: Member, role: Member["role"]) => {
    const before = members.items;
    members.set(before.map((m) => (m.userId === member.userId ? { ...m, role } : m)));
    try {
      await api.send("PATCH", wsPath(`/members/${encodeURIComponent(member.userId)}`), { role });
      toast("The role is changed.", { kind: "success" });
    } catch (error) {
      members.set(before);
      toastFailure(error, () => void changeRole(member, role));
    }
  };
  const remove = async (member: Member) => {
    const done = await askAndSend(
      {
        title: `Remove ${member.name ?? member.email ?? "the member"}?`,
        text: "Tokens and OAuth clients that this member made in the workspace end at once. What the member wrote stays.",
        action: "Remove member",
        danger: true,
      },
      "DELETE",
      wsPath(`/members/${encodeURIComponent(member.userId)}`),
      "The member is removed.",
    );
    if (done) reload();
  };

  const columns: Column<Member>[] = [
    {
      key: "name",
      title: "Member",
      render: (m) => (
        <span class="badges">
          <Avatar id={m.userId} name={m.name ?? m.email ?? "Member"} />
          <span>{m.name ?? m.email ?? <code>{m.userId}</code>}</span>
          {m.userId === session?.actorId && <Badge>You</Badge>}
        </span>
      ),
    },
    { key: "email", title: "E-mail address", wide: true, render: (m) => m.email ?? "" },
    {
      key: "role",
      title: "Role",
      render: (m) =>
        rights.admin && m.role !== "owner" ? (
          <Select aria-label={`Role of ${m.name ?? m.email ?? m.userId}`} value={m.role} onChange={(role) => void changeRole(m, role as Member["role"])} options={roles} />
        ) : (
          roleTitle(m.role)
        ),
    },
    { key: "since", title: "Since", wide: true, render: (m) => <Time at={m.createdAt} /> },
    {
      key: "acts",
      title: "",
      align: "end",
      render: (m) =>
        rights.admin &&
        m.role !== "owner" && (
          <Button small kind="quiet" onClick={() => void remove(m)}>
            Remove
          </Button>
        ),
    },
  ];
  return (
    <Page
      title="Members"
      subtitle="People of the workspace. Agents have their own page."
      actions={
        rights.admin && (
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
            Add member
          </Button>
        )
      }
    >
      <PagedTable label="Members" pages={members} columns={columns} rowKey={(m) => m.userId} empty={<Empty title="There are no members." />} />
      {adding && (
        <AddMember
          onClose={() => setAdding(false)}
          onDone={() => {
            setAdding(false);
            reload();
          }}
        />
      )}
    </Page>
  );
}
