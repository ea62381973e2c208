package systemtest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
	"switchyard/internal/testkit/bucket"
)

// backupCommand runs the binary as the operator.
func backupCommand(t *testing.T, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Env = append(append(os.Environ(), "SWITCHYARD_ROOT_TOKEN="+rootToken), bucketEnv...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// bucketEnv has the credentials of the bucket of the tests.
var bucketEnv = []string{
	"AWS_ACCESS_KEY_ID=" + bucket.AccessKey, "AWS_SECRET_ACCESS_KEY=" + bucket.SecretKey, "AWS_SESSION_TOKEN=" + bucket.Session, "AWS_REGION=" + bucket.Region,
}

// taskCommands returns the commands of a page of docs, in their order.
func taskCommands(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	return commands
}

// TestBackup_TaskPage runs every command of docs/backup.md, and then refuses to restore what
// is damaged.
func TestBackup_TaskPage(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	env := append([]string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, bucketEnv...)
	node, err := Launch(ctx, binary(t), t.TempDir(), env, "--shards", "2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	home, err := NewClient(node.URL, "", 1).Onboard(ctx, "Home", "home")
	if err != nil {
		t.Fatal(err)
	}
	c := NewClient(node.URL, home.Token.Token, 1)
	path := "/workspaces/" + home.Workspace.ID
	issue, err := c.Do(ctx, "POST", path+"/issues", object{"title": "Kept"}, "Idempotency-Key", "kept")
	if err != nil || issue.Status != http.StatusCreated {
		t.Fatalf("%v, %d %s", err, issue.Status, issue.Body)
	}
	dir := t.TempDir()
	backups := filepath.Join(dir, "backups")
	places := strings.NewReplacer("/backups", backups, "/var/lib", dir, "https://s3.example:9000", bucket.New(t).URL, "http://127.0.0.1:8080", node.URL)
	var restored *Process
	for _, command := range taskCommands(t, "backup.md") {
		words := strings.Fields(places.Replace(command))
		if at := slices.Index(words, "--at"); at > 0 {
			words[at+1] = latestMoment(ctx, t, backups+"-scheduled")
		}
		switch {
		case words[0] != "switchyard":
			t.Errorf("%q is not a command of ours", command)
		case words[1] == "serve":
			if restored, err = Launch(ctx, binary(t), words[3], env, words[4:]...); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(restored.Kill)
			for len(words) > 4 && len(backupsOf(t, words[5])) == 0 {
				if ctx.Err() != nil {
					t.Fatalf("%s: no backup is made", command)
				}
				time.Sleep(10 * time.Millisecond)
			}
		default:
			code, out := backupCommand(t, words[1:]...)
			if code != 0 || strings.Contains(out, bucket.SecretKey) {
				t.Fatalf("%s: %d: %s", command, code, out)
			}
		}
	}
	c = NewClient(restored.URL, home.Token.Token, 1)
	again, err := c.Do(ctx, "POST", path+"/issues", object{"title": "Kept"}, "Idempotency-Key", "kept")
	if err != nil || !bytes.Equal(again.Body, issue.Body) || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("the request made again is answered %v, %d %s", err, again.Status, again.Body)
	}
	refuseDamaged(ctx, t, node, backups)
}

// latestMoment waits until the newest backup in a directory leads to some moment, and returns it.
func latestMoment(ctx context.Context, t *testing.T, dir string) string {
	t.Helper()
	for {
		code, out := backupCommand(t, "backup", "list", dir)
		if found := regexp.MustCompile(`--at from \S+ to (\S+)\.\n`).FindStringSubmatch(out); code == 0 && found != nil {
			return found[1]
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("no log is archived: %d %s", code, out)
		}
	}
}

// refuseDamaged changes a directory of backups in every way and restores it.
func refuseDamaged(ctx context.Context, t *testing.T, node *Process, backups string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(backups, "backup-*.json"))
	files, err2 := filepath.Glob(filepath.Join(backups, "shards", "*.shard"))
	if err != nil || err2 != nil || len(manifests) != 1 || len(files) != 3 {
		t.Fatalf("there are %v and %v", manifests, files)
	}
	manifest := manifests[0]
	edit := func(change func([]byte) []byte) func(string) error {
		return func(file string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			return os.WriteFile(file, change(text), 0o600)
		}
	}
	for name, damage := range map[string]struct {
		file   string
		change func(string) error
		says   string
	}{
		"a file is missing":     {files[0], os.Remove, "missing"},
		"a file is cut":         {files[1], edit(func(b []byte) []byte { return b[:len(b)-1] }), "bytes of"},
		"a byte is damaged":     {files[2], edit(func(b []byte) []byte { b[len(b)/2] ^= 4; return b }), "damaged"},
		"the manifest is cut":   {manifest, edit(func(b []byte) []byte { return b[:len(b)/2] }), "cut off or damaged"},
		"the manifest is empty": {manifest, edit(func([]byte) []byte { return nil }), "cut off or damaged"},
		"an index is damaged": {manifest, edit(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"epoch": 2`), []byte(`"epoch": 3`), 1)
		}), "cut off or damaged"},
		"it is not complete": {manifest, edit(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"complete": true`), []byte(`"complete": false`), 1)
		}), "cut off or damaged"},
		"it is of a newer version": {manifest, edit(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"version": 2`), []byte(`"version": 3`), 1)
		}), "of version 3"},
		"there is no manifest": {manifest, os.Remove, "no complete backup"},
	} {
		before, err := os.ReadFile(damage.file)
		if err == nil {
			err = damage.change(damage.file)
		}
		if err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(t.TempDir(), "data")
		if code, out := backupCommand(t, "restore", "--from", backups, "--data", data); code != 1 || !strings.Contains(out, damage.says) {
			t.Errorf("%s: restore ended with %d: %s", name, code, out)
		}
		if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: restore left its directory (%v)", name, err)
		}
		if code, out := backupCommand(t, "backup", "drill", backups); code != 1 {
			t.Errorf("%s: the drill ended with %d: %s", name, code, out)
		}
		if err := os.WriteFile(damage.file, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := backupCommand(t, "restore", "--from", backups, "--data", full); code != 1 || !strings.Contains(out, "not empty") {
		t.Errorf("into a directory that is not empty: %d: %s", code, out)
	}

	// A damaged file is not used again; a backup that fails leaves those that were there.
	if err := edit(func(b []byte) []byte { b[len(b)/2] ^= 4; return b })(files[0]); err != nil {
		t.Fatal(err)
	}
	if code, out := backupCommand(t, "backup", "--to", backups, "--url", node.URL); code != 0 || strings.Count(out, "unchanged") > 2 {
		t.Errorf("after a file was damaged: %d: %s", code, out)
	}
	if code, out := backupCommand(t, "backup", "drill", backups); code != 0 {
		t.Errorf("the drill of the next backup: %d: %s", code, out)
	}
	node.Kill()
	if code, out := backupCommand(t, "backup", "--to", backups, "--url", node.URL); code != 3 {
		t.Errorf("without a node: %d: %s", code, out)
	}
	if now, err := filepath.Glob(filepath.Join(backups, "backup-*.json")); err != nil || len(now) != 2 {
		t.Errorf("there are %v (%v)", now, err)
	}
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
}

// TestBackup_OfAClusterUnderLoad takes a backup of four nodes under creates while one dies and the shards of
// another move away, restores it into one node and lets two others join.
func TestBackup_OfAClusterUnderLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 4, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	first := load.spaces[0]
	owner := f.members[0].Client(first.token)
	var session struct {
		Sessions []struct {
			Session struct {
				ID string `json:"id"`
			} `json:"session"`
			LaneToken string `json:"laneToken"`
		} `json:"sessions"`
	}
	if err := owner.Decode(ctx, "POST", "/workspaces/"+first.id+"/issues/"+first.registers[0]+"/dispatch", object{"instructions": "go"}, http.StatusCreated, nil); err != nil {
		t.Fatal(err)
	}
	if err := owner.Decode(ctx, "POST", "/workspaces/"+first.id+"/agent/sessions/claim", object{}, http.StatusOK, &session); err != nil || len(session.Sessions) != 1 {
		t.Fatalf("claim: %v, %+v", err, session)
	}
	load.run(ctx, s, 10*time.Millisecond)
	for load.served.Load() < 500 && load.wait(ctx, 10*time.Millisecond) {
	}
	acknowledged := map[*space]map[string]string{}
	for _, sp := range load.spaces {
		acknowledged[sp] = sp.books()
	}
	f.members[2].Kill()
	leaves := f.members[1].Name
	testkit.Await(ctx, t, leaves+" drains", func() bool {
		code, out := f.operator(ctx, "cluster", "drain", leaves, "--no-wait", "--url", f.members[0].URL)
		if code != 0 && code != 3 { // 503: on a busy machine the directory may have no owner yet
			t.Fatalf("the drain ended with %d: %s", code, out)
		}
		return code == 0
	})
	backups := filepath.Join(t.TempDir(), "backups")
	code, out := f.operator(ctx, "backup", "--to", backups, "--url", f.members[0].URL)
	if code != 0 {
		t.Fatalf("the backup ended with %d: %s", code, out)
	}
	moved := func(v ClusterView) bool {
		for _, shard := range v.Shards {
			if shard.Leader == leaves || shard.Leader == "" {
				return false
			}
		}
		return true
	}
	if err := f.members[0].Await(ctx, leaves+" leads nothing", moved); err != nil {
		t.Error(err)
	}
	load.end()
	f.Close()
	if code, out := f.operator(ctx, "backup", "drill", backups); code != 0 || !strings.Contains(out, "clean") {
		t.Errorf("the drill ended with %d: %s", code, out)
	}

	to := NewFleet(binary(t), t.TempDir())
	to.keepLogs(t)
	m, err := to.Add("restored")
	if err != nil {
		t.Fatal(err)
	}
	if code, out := to.operator(ctx, "restore", "--from", backups, "--data", m.Data, "--node-name", m.Name); code != 0 {
		t.Fatalf("the restore ended with %d: %s", code, out)
	}
	if err := Verify(ctx, to.Binary, m.Data); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	to.grow(ctx, t, 3)
	lane := to.members[1].Client(session.Sessions[0].LaneToken)
	var issue Issue
	for sp, books := range acknowledged {
		if len(books) == 0 {
			t.Error("a workspace had no creates")
		}
		c := to.members[2].Client(sp.token)
		for ref, id := range books {
			if err := c.Decode(ctx, "GET", "/workspaces/"+sp.id+"/issues/"+id, nil, http.StatusOK, &issue); err != nil || issue.ExternalRef == nil || *issue.ExternalRef != ref {
				t.Errorf("issue %s of workspace %s: %v, %+v", id, sp.id, err, issue)
			}
		}
		if err := c.insist(ctx, "/workspaces/"+sp.id+"/issues", object{"title": "After"}, "after", &issue); err != nil {
			t.Error(err)
		}
	}
	sessionPath := "/workspaces/" + first.id + "/agent/sessions/" + session.Sessions[0].Session.ID
	if err := lane.Decode(ctx, "POST", sessionPath+"/report", object{"status": "completed", "result": "done"}, http.StatusOK, nil); err != nil {
		t.Errorf("the lane token: %v", err)
	}
	if err := to.members[0].Await(ctx, "nobody is behind and nothing is written", Quiet(3)); err != nil {
		t.Fatal(err)
	}
	to.compare(ctx, t)
}

// books returns the creates that were acknowledged so far.
func (s *space) books() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for ref, id := range s.created {
		out[ref] = id
	}
	return out
}

// operator runs a command of the binary with the fleet's root token.
func (f *Fleet) operator(ctx context.Context, args ...string) (int, string) {
	cmd := exec.CommandContext(ctx, f.Binary, args...)
	cmd.Env = append(os.Environ(), "SWITCHYARD_ROOT_TOKEN="+f.Root)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
