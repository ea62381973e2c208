package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"switchyard/actors/tracker"
	"switchyard/cmd/internal/backup"
)

type backupCmd struct {
	Take  backupTakeCmd  `cmd:"" default:"withargs" help:"Copy a running cluster into a directory or a bucket (also without the word take)."`
	List  backupListCmd  `cmd:"" help:"List the complete backups in a directory or a bucket."`
	Drill backupDrillCmd `cmd:"" help:"Restore a backup into a scratch directory, prove it, and remove it again."`
	Key   backupKeyCmd   `cmd:"" help:"Make a key that encrypts backups."`
}

// archiveFlags say how backups are kept where they are.
type archiveFlags struct {
	KeyFile    string `help:"File with the key that encrypts the backups, from backup key; without it they are not encrypted." placeholder:"FILE"`
	S3Endpoint string `name:"s3-endpoint" env:"SWITCHYARD_S3_ENDPOINT" help:"URL of the service that has the bucket of s3://BUCKET/PREFIX (that of AWS when not given); AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN have the credentials." placeholder:"URL"`
	S3Region   string `name:"s3-region" env:"SWITCHYARD_S3_REGION" help:"Region of the bucket (AWS_REGION, or us-east-1, when not given)." placeholder:"NAME"`
}

// open returns the archive in a place.
func (a archiveFlags) open(place string) (*backup.Archive, error) {
	key, err := backup.ReadKey(a.KeyFile)
	if err != nil {
		return nil, err
	}
	where, err := backup.PlaceAt(place, backup.S3FromEnv(backup.S3{Endpoint: a.S3Endpoint, Region: a.S3Region}))
	if err != nil {
		return nil, err
	}
	return backup.NewArchive(where, key), nil
}

type backupTakeCmd struct {
	To        string `required:"" help:"Directory of backups, or s3://BUCKET/PREFIX; one that is there gets a further backup." placeholder:"DIR"`
	Keep      int    `help:"Number of backups to keep there; 0 keeps all." default:"0"`
	URL       string `name:"url" help:"Any node of the cluster." default:"http://127.0.0.1:8080"`
	TokenFile string `help:"File with the operator's token; SWITCHYARD_ROOT_TOKEN holds the token itself." placeholder:"FILE"`
	archiveFlags
}

// interruptible returns a context that SIGTERM and SIGINT end.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// interrupted gives the error of a command that a signal has ended the exit code of that. ctx is from
// interruptible.
func interrupted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return &exitError{exitInterrupted, err}
}

func (b backupTakeCmd) Run() error {
	if b.Keep < 0 {
		return errors.New("--keep must be 0 or more")
	}
	token, err := rootToken(b.TokenFile)
	if err != nil {
		return err
	}
	if token == "" {
		return &exitError{exitCredential, errors.New("this needs the operator's token: give --token-file, or set SWITCHYARD_ROOT_TOKEN")}
	}
	c, err := backup.NewClient(b.URL, token)
	if err != nil {
		return err
	}
	to, err := b.open(b.To)
	if err != nil {
		return err
	}
	ctx, cancel := interruptible()
	defer cancel()
	show := newStepProgress(os.Stderr)
	name, m, err := backup.Take(ctx, backup.Taking{Client: c, To: to, Keep: b.Keep, Now: time.Now, Progress: show.taking})
	show.end()
	if err != nil {
		return asked{"back up", "--url", operatorsToken}.failed(ctx, err)
	}
	fmt.Printf("%s: complete, %s, %d bytes.\n", name, plural(len(m.Files), "shard"), m.Bytes())
	return nil
}

type backupListCmd struct {
	Dir string `arg:"" help:"Directory of backups, or s3://BUCKET/PREFIX."`
	archiveFlags
}

func (b backupListCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	from, err := b.open(b.Dir)
	if err != nil {
		return err
	}
	names, err := from.List(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	var failed error
	var all []*backup.Manifest
	var read []string
	for _, name := range names {
		m, err := from.Open(ctx, name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		all, read = append(all, m), append(read, name)
	}
	spans, err := from.Spans(ctx, all)
	if err != nil {
		return interrupted(ctx, errors.Join(failed, err))
	}
	for i, m := range all {
		fmt.Printf("%s: cluster %s, %s, %d bytes%s.\n", read[i], m.ClusterID, plural(len(m.Files), "shard"), m.Bytes(), reachable(spans[i]))
	}
	return interrupted(ctx, failed)
}

// reachable says to which moments a backup can be restored.
func reachable(s backup.Span) string {
	if !s.Any() {
		return ""
	}
	return fmt.Sprintf("; --at from %s to %s", s.From.UTC().Format(time.RFC3339Nano), s.To.UTC().Format(time.RFC3339Nano))
}

type backupDrillCmd struct {
	Dir     string     `arg:"" help:"Directory of backups, or s3://BUCKET/PREFIX."`
	Backup  string     `help:"Name of the backup (the newest when not given)." placeholder:"NAME"`
	At      momentFlag `help:"Try out the state of this moment, see restore." placeholder:"TIME"`
	Scratch string     `help:"Directory with room for the data (that of the backups, or that for temporary files, when not given)." placeholder:"DIR"`
	archiveFlags
}

func (b backupDrillCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	from, err := b.open(b.Dir)
	if err != nil {
		return err
	}
	show := newStepProgress(os.Stderr)
	d, err := backup.Drill(ctx, backup.Drilling{From: from, Backup: b.Backup, At: b.At.Time, Scratch: b.Scratch, Now: time.Now, Progress: show.restoring})
	show.end()
	if err != nil {
		return interrupted(ctx, fmt.Errorf("drill: %w", err))
	}
	fmt.Printf("Backup of %s, cluster %s: the fingerprints of %s are those of the manifest.\n",
		d.Manifest.Moment.Format(time.RFC3339), d.Manifest.ClusterID, plural(len(d.Manifest.Files), "shard"))
	tellRestored(d.Restored, b.At)
	return tellReport(d.Report, "the backup")
}

type backupKeyCmd struct {
	File string `arg:"" help:"File for the key, which must not be there."`
}

func (b backupKeyCmd) Run() error {
	if err := backup.NewKey(b.File); err != nil {
		return err
	}
	fmt.Printf("%s has a new key. Keep a copy apart from the backups: without it they can't be read.\n", b.File)
	return nil
}

type restoreCmd struct {
	From     string     `required:"" help:"Directory of backups, or s3://BUCKET/PREFIX." placeholder:"DIR"`
	Backup   string     `help:"Name of the backup (the newest when not given)." placeholder:"NAME"`
	At       momentFlag `help:"Restore the state of this moment (RFC 3339, such as 2026-01-31T15:04:05Z): that of the newest backup before it, and of the archived logs up to it." placeholder:"TIME"`
	Data     string     `required:"" help:"Data directory of the new node, which must be empty." placeholder:"DIR"`
	NodeName string     `help:"Name of the new node (${default_node} when not given)." placeholder:"NAME"`
	archiveFlags
}

func (r restoreCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	from, err := r.open(r.From)
	if err != nil {
		return err
	}
	show := newStepProgress(os.Stderr)
	done, err := backup.Restore(ctx, backup.Restoring{From: from, Backup: r.Backup, At: r.At.Time, Data: r.Data, Node: r.NodeName, Now: time.Now, Progress: show.restoring})
	show.end()
	if err != nil {
		return interrupted(ctx, fmt.Errorf("restore: %w", err))
	}
	tellRestored(done, r.At)
	fmt.Printf("%s is the data of a new cluster, %s. Start it with: switchyard serve --data %s\n", r.Data, done.Cluster, r.Data)
	return nil
}

// momentFlag is a moment in the form of RFC 3339; zero: it was not given.
type momentFlag struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *momentFlag) UnmarshalText(text []byte) (err error) {
	if m.Time, err = time.Parse(time.RFC3339Nano, string(text)); err != nil || m.IsZero() {
		return fmt.Errorf("%q is not a moment such as 2026-01-31T15:04:05Z", text)
	}
	return nil
}

// tellRestored says how the shards' moments differed.
func tellRestored(r *backup.Restored, at momentFlag) {
	if !at.IsZero() {
		fmt.Printf("The state is that of %s: the backup of %s, and %s behind it.\n", at.Format(time.RFC3339Nano), r.Manifest.Moment.Format(time.RFC3339), tracker.Counted(r.Entries, "log entry", "log entries"))
	}
	for _, name := range r.Later {
		fmt.Printf("%s has a later time, but an older state by the entries of the logs: a clock was wrong. It was passed over; --backup restores it.\n", name)
	}
	for _, err := range r.Damaged {
		fmt.Printf("A part of the archived logs was left out, and is not needed for this moment: %v\n", err)
	}
	if r.Late > 0 {
		late := tracker.Counted(r.Late, "later entry in the log has a time before that, and is", "later entries in the log have a time before that, and are")
		fmt.Printf("At least %s left out: clocks of nodes differed, or one was set. Choose a later moment if writes are missing.\n", late)
	}
	for _, slug := range r.Kept {
		fmt.Printf("Workspace %q was not in the directory, and was kept: it had just been created, or deleted. Delete it if it is not to be there.\n", slug)
	}
	if r.Erased > 0 {
		fmt.Printf("%s had been deleted during the backup and will be erased by the first start.\n", plural(r.Erased, "workspace"))
	}
	if r.Forgotten > 0 {
		fmt.Printf("%s had been created during the backup and will be forgotten by the first start.\n", plural(r.Forgotten, "workspace"))
	}
	if r.Memberships > 0 {
		fmt.Printf("%s had been changed during the backup and are as their workspaces have them.\n", plural(r.Memberships, "membership"))
	}
}

// stepProgress shows on stderr how far a backup or a restore is: on a terminal in one line,
// elsewhere a line for each shard.
type stepProgress struct {
	out      io.Writer
	terminal bool
	last     backup.Progress
	open     bool
}

func newStepProgress(f *os.File) *stepProgress {
	return &stepProgress{out: f, terminal: isatty.IsTerminal(f.Fd())}
}

func (p *stepProgress) taking(now backup.Progress) {
	step := now.Done != p.last.Done || now.What != p.last.What
	if !step && (!p.terminal || now.Bytes < p.last.Bytes+1<<20) {
		return
	}
	p.last = now
	p.line(fmt.Sprintf("%d of %s, %d MiB: shard %d: %s", now.Done, plural(now.Shards, "shard"), now.Bytes>>20, now.Shard, now.What))
}

func (p *stepProgress) restoring(done, shards int) {
	p.line(fmt.Sprintf("%d of %s", done, plural(shards, "shard")))
}

func (p *stepProgress) line(text string) {
	if p.terminal {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		p.open = true
		return
	}
	_, _ = fmt.Fprintln(p.out, text)
}

// end leaves the line.
func (p *stepProgress) end() {
	if p.open {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
