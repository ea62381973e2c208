// The answer of a settings page to a caller without the right to see it.

import { Empty, Page } from "../../ui";

export function AdminsOnly({ title }: { title: string }) {
  return (
    <Page title={title}>
      <Empty title="Only owners and admins see this page." icon="key">
        Sign in as an owner or admin of the workspace, with a token that has the permission admin.
      </Empty>
    </Page>
  );
}
