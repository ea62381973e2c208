package node

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cmd/internal/backup"
)

func TestBackups_AreChecked(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	if err := backup.NewKey(key); err != nil {
		t.Fatal(err)
	}
	valid := Backups{To: "/backups", Every: new(time.Hour), Keep: 3, KeyFile: key}
	for name, c := range map[string]struct {
		change func(*Config)
		says   string // empty: valid
	}{
		"all":                   {func(*Config) {}, ""},
		"the place alone":       {func(c *Config) { c.Backups = Backups{To: "/backups"} }, ""},
		"none":                  {func(c *Config) { c.Backups = Backups{} }, ""},
		"no place":              {func(c *Config) { c.Backups.To = "" }, "need --backup-to"},
		"a number alone":        {func(c *Config) { c.Backups = Backups{Keep: 3} }, "need --backup-to"},
		"no token":              {func(c *Config) { c.RootToken = "" }, "needs the operator's token"},
		"always":                {func(c *Config) { c.Backups.Every = new(time.Duration(0)) }, "--backup-every 0s"},
		"always, of no place":   {func(c *Config) { c.Backups = Backups{Every: new(time.Duration(0))} }, "need --backup-to"},
		"too often":             {func(c *Config) { c.Backups.Every = new(time.Second - 1) }, "--backup-every 999.999999ms"},
		"before the last":       {func(c *Config) { c.Backups.Every = new(-time.Hour) }, "--backup-every -1h"},
		"fewer than none":       {func(c *Config) { c.Backups.Keep = -1 }, "--backup-keep -1"},
		"the data directory":    {func(c *Config) { c.Backups.To = "/data/" }, "is in the data directory"},
		"in the data directory": {func(c *Config) { c.Backups.To = "/data/x/../backups" }, "is in the data directory"},
		"beside it":             {func(c *Config) { c.Backups.To = "/data-backups" }, ""},
		"a bucket": {func(c *Config) {
			c.Backups.To, c.Backups.S3 = "s3://bucket/p", backup.S3{AccessKey: "a", SecretKey: "b"}
		}, ""},
		"no credentials":    {func(c *Config) { c.Backups.To = "s3://bucket/p" }, "--backup-to: s3://bucket/p needs credentials"},
		"credentials alone": {func(c *Config) { c.Backups = Backups{S3: backup.S3{AccessKey: "a", SecretKey: "b"}} }, ""},
		"no key":            {func(c *Config) { c.Backups.KeyFile = key + ".absent" }, "--backup-key-file"},
	} {
		cfg := Config{Data: "/data", RootToken: "root-token-of-the-tests", Backups: valid}
		c.change(&cfg)
		err := cfg.validateBackups()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// A place of backups that hangs takes two seconds of a stop, and not all of its time.
func TestSchedule_StopsWithoutThePlace(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ ends, want time.Duration }{
		"it ends":  {time.Second, time.Second},
		"it hangs": {time.Hour, scheduleStop},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &schedule{Schedule: &backup.Schedule{Logger: slog.New(slog.NewTextHandler(&log, nil))}, to: "/backups", ended: make(chan struct{})}
			s.cancel = func() { time.AfterFunc(row.ends, func() { close(s.ended) }) }
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			s.stop(ctx)
			if took := time.Since(began); took != row.want {
				t.Errorf("%s: stopped after %s, want %s", name, took, row.want)
			}
			if hangs := row.ends > row.want; strings.Contains(log.String(), "place=/backups") != hangs {
				t.Errorf("%s: the log is %q", name, &log)
			}
		})
	}
}
