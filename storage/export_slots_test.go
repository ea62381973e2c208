package storage

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"
)

func TestExport_FewAtOnce(t *testing.T) {
	t.Parallel()
	s := memory(t)
	var open []*Export
	for range maxExports {
		open = append(open, ok(s.Export(t.Context(), 1, time.Second))(t))
	}
	if _, err := s.Export(t.Context(), 1, time.Microsecond); !errors.Is(err, ErrBusy) {
		t.Errorf("one too many gave %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		e, err := s.Export(context.Background(), 1, time.Minute)
		if err == nil {
			err = e.Close()
		}
		waited <- err
	}()
	must(t, open[0].Close())
	must(t, <-waited)
	for _, e := range open[1:] {
		must(t, e.Close())
	}
	must(t, open[1].Close()) // once more does nothing
}

// A free place is taken by an export that does not wait at all.
func TestExport_FreePlaceWithoutWaiting(t *testing.T) {
	t.Parallel()
	s := memory(t)
	for range 50 {
		must(t, ok(s.Export(t.Context(), 1, 0))(t).Close())
	}
}

// An export that was read to its end takes no place of others: its receiver may take minutes for the answer.
func TestExport_ReadToItsEnd(t *testing.T) {
	t.Parallel()
	s := memory(t)
	var read []*Export
	for range maxExports {
		e := ok(s.Export(t.Context(), 1, time.Second))(t)
		if n := ok(io.Copy(io.Discard, e))(t); n != e.Size() {
			t.Errorf("read %d bytes of %d", n, e.Size())
		}
		read = append(read, e)
	}
	e := ok(s.Export(t.Context(), 1, time.Microsecond))(t)
	if left := ok(s.transfer.fs.List(s.transfer.dir))(t); len(left) != 1 {
		t.Errorf("there are the files of %v", left)
	}
	for _, e := range append(read, e) {
		must(t, e.Close())
	}
}
