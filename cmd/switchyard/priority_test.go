package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The commands that copy or prove all data give way to others, however they are written.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"backup --to /backups":      true,
		"backup take --to /backups": true,
		"backup drill /backups":     true,
		"backup list /backups":      false,
		"serve":                     false,
	} {
		var c cli
		parser, err := kong.New(&c, options()...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := parser.Parse(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := givesWay(ctx.Command()); got != want {
			t.Errorf("%s, which is %q, gives way: %t", line, ctx.Command(), got)
		}
	}
}
