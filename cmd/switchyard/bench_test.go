package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run whose report can't be written ends before it has measured for minutes.
func TestBench_LooksForReportsFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, fresh := filepath.Join(dir, "kept.json"), filepath.Join(dir, "fresh.html")
	if err := os.WriteFile(kept, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reportsWritable(kept, "", fresh); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "{}" {
		t.Errorf("the report of before is %q, %v", text, err)
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a report was written: %v", err)
	}
	nowhere := filepath.Join(dir, "nowhere", "report")
	for name, run := range map[string]interface{ Run() error }{
		"run":      benchRunCmd{JSON: kept, HTML: nowhere},
		"scale":    benchScaleCmd{JSON: nowhere},
		"failover": benchFailoverCmd{JSON: nowhere},
	} {
		if err := run.Run(); err == nil || !strings.Contains(err.Error(), "write the report: open "+nowhere) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
