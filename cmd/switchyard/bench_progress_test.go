package main

import (
	"strings"
	"testing"
	"time"

	"switchyard/bench"
)

func TestProgress_OnATerminalAndOff(t *testing.T) {
	t.Parallel()
	at := func(seconds int, done bool) bench.Progress {
		return bench.Progress{Step: 3, Steps: 12, Name: "get, 16 connections", Elapsed: time.Duration(seconds) * time.Second, Lasts: 10 * time.Second, Rate: 61002, Errors: 1, Done: done}
	}
	for name, row := range map[string]struct {
		terminal bool
		want     string
	}{
		"terminal": {true, "\r\x1b[K[3/12] get, 16 connections  ##------------------ 1 s of 10  61002/s  1 error\r\x1b[K[3/12] get, 16 connections  ##########---------- 5 s of 10  61002/s  1 error\r\x1b[K"},
		"file":     {false, "[3/12] get, 16 connections  ##########---------- 5 s of 10  61002/s  1 error\n"},
	} {
		var out strings.Builder
		p := &progressPrinter{out: &out, terminal: row.terminal}
		p.show(at(1, false))
		p.show(at(5, false))
		p.show(at(10, true))
		if out.String() != row.want {
			t.Errorf("%s: %q, want %q", name, out.String(), row.want)
		}
	}
	if got := progressLine(&bench.Progress{Step: 1, Steps: 2, Name: "filling", Elapsed: 2 * time.Second, Answers: 900, Rate: 450}); got != "[1/2] filling  2 s, 900 done  450/s" {
		t.Errorf("%q", got)
	}
	if got := progressLine(&bench.Progress{Step: 1, Steps: 2, Name: "release", Elapsed: 2 * time.Second, Uncounted: true}); got != "[1/2] release  2 s" {
		t.Errorf("%q", got)
	}
}
