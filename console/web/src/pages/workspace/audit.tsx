// Administrative acts: changes of rights, limits and connections, with their actors.

import { wsPath } from "../../workspace";
import { Page } from "../../ui";
import { AuditList } from "../audit_list";
import { useRights } from "../rights";
import { AdminsOnly } from "./admins_only";

export default function AuditPage() {
  if (!useRights().admin) return <AdminsOnly title="Audit" />;
  return (
    <Page title="Audit" subtitle="Changes of rights, limits and connections, with their actors. Days are in UTC.">
      <AuditList path={wsPath("/audit")} />
    </Page>
  );
}
