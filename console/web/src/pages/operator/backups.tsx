// The age of the newest backup, and why the last try failed.

import type { BackupStatus } from "../../types_admin";
import { Badge, Section, Time } from "../../ui";
import { formatDuration } from "../agents/session_text";

/** A backup that is older than this many periods is too old. */
const tooOld = 2;

export function Backups({ backup }: { backup: BackupStatus | null | undefined }) {
  if (!backup) {
    return (
      <Section title="Backups">
        <p class="muted">No schedule is set. Start the nodes with --backup-to, or run the backup command by cron.</p>
      </Section>
    );
  }
  const old = backup.ageSeconds === null || backup.ageSeconds > tooOld * backup.everySeconds;
  return (
    <Section title="Backups" actions={old ? <Badge kind="danger">Too old</Badge> : <Badge kind="success">In time</Badge>}>
      <dl class="facts">
        <dt>Age of the newest</dt>
        <dd>{backup.ageSeconds === null ? "There is none." : formatDuration(backup.ageSeconds * 1000)}</dd>
        {backup.lastAt && (
          <>
            <dt>Taken</dt>
            <dd>
              <Time at={backup.lastAt} plain />
            </dd>
          </>
        )}
        {backup.lastName && (
          <>
            <dt>Name</dt>
            <dd>
              <code class="break">{backup.lastName}</code>
            </dd>
          </>
        )}
        <dt>Every</dt>
        <dd>{formatDuration(backup.everySeconds * 1000)}</dd>
        <dt>Kept in</dt>
        <dd>
          <code class="break">{backup.to}</code>
        </dd>
        {backup.failures > 0 && (
          <>
            <dt>Failed tries</dt>
            <dd>{backup.failures}</dd>
          </>
        )}
      </dl>
      {backup.error && <p class="notice notice-error">{backup.error}</p>}
    </Section>
  );
}
