package actors

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// disk is a disk whose free space a test sets.
type disk struct{ short atomic.Uint32 }

func (d *disk) is(s storage.Shortage)      { d.short.Store(uint32(s)) }
func (d *disk) shortage() storage.Shortage { return storage.Shortage(d.short.Load()) }

// The less free space there is, the fewer operations run: first only those that free
// space, and at last the deletions of workspaces and the operator's requests.
func TestCommand_WhatFreesSpaceGoesOnLongest(t *testing.T) {
	t.Parallel()
	var disk disk
	b := setup(t, func(c *Config) { c.Shortage = disk.shortage })
	ws := workspaceNumber(1)
	operator := tracker.Caller{Principal: tracker.OperatorPrincipal()}
	for _, c := range []struct {
		name  string
		room  tracker.SpaceEffect
		who   tracker.Caller
		until storage.Shortage // the worst shortage in which it runs
	}{
		{"a change", tracker.UsesSpace, tracker.System, storage.Ample},
		{"a heartbeat", tracker.NeedsNoSpace, tracker.System, storage.Ample},
		{"a deletion", tracker.FreesSpace, tracker.System, storage.Short},
		{"a workspace's deletion", tracker.EndsWorkspace, tracker.System, storage.Scarce},
		{"the operator's change", tracker.UsesSpace, operator, storage.Scarce},
	} {
		op := tracker.NewCommand[tracker.None, tracker.None]("op", "", tracker.Needs{}, func(*tracker.Tx, *tracker.None) (tracker.Reply, error) {
			return tracker.Reply{}, nil
		}, tracker.RunsWithoutWorkspace, tracker.WithSpaceEffect(c.room))
		for short := storage.Ample; short <= storage.Spent; short++ {
			disk.is(short)
			req := request(ws)
			req.Caller = c.who
			_, err := b.engine.Do(req, op, &tracker.None{})
			if done := err == nil; done != (short <= c.until) || !done && outcome(err) != "not_applied" {
				t.Errorf("%s at shortage %d: %v", c.name, short, err)
			}
		}
	}
}

func TestCommand_IsRefusedWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	var disk disk
	b := setup(t, func(c *Config) { c.Shortage = disk.shortage })
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)

	disk.is(storage.Short)
	_, err := b.count(ws)
	var failure *tracker.Error
	if !errors.As(err, &failure) || outcome(err) != "not_applied" || failure.RetryAfter < time.Second {
		t.Errorf("a change on a full disk: %v", err)
	}
	if n, err := b.do(ws, readCount, &tracker.None{}); err != nil || n != "1" {
		t.Errorf("read %s, %v", n, err)
	}
	if n := b.engine.Stats().Refused["disk_full"]; n != 1 {
		t.Errorf("%d refusals counted", n)
	}

	disk.is(storage.Ample)
	b.mustCount(ws, 2)
}

// lacks lets there be no space for changes: on the node's own disk, or on those of the shards' voters.
var lacks = map[string]func(b *testEngine, own *disk, lack bool){
	"its own disk": func(_ *testEngine, own *disk, lack bool) {
		if own.is(storage.Ample); lack {
			own.is(storage.Short)
		}
	},
	"the disks of the voters": func(b *testEngine, _ *disk, lack bool) { b.local.full.Store(lack) },
}

func TestScheduler_WaitsForSpace(t *testing.T) {
	t.Parallel()
	for name, lack := range lacks {
		t.Run("on "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var disk disk
				b := setup(t, func(c *Config) { c.Shortage = disk.shortage })
				b.withTimers(map[string]*tracker.Op{"alarm": ring(nil)})
				ws := workspaceNumber(1)
				b.alarm(ws, "alarm", time.Now().Add(time.Minute))
				lack(b, &disk, true)
				pass(time.Hour)
				synctest.Wait()
				if rung := b.rung(ws); rung != "" {
					t.Errorf("rang at %s on a full disk", rung)
				}
				lack(b, &disk, false)
				free := time.Now()
				pass(time.Minute)
				synctest.Wait()
				if rung := b.rung(ws); rung < at(free) || rung > at(free.Add(2*time.Second)) {
					t.Errorf("rang at %s, there was space from %s", rung, at(free))
				}
				if s := b.engine.Stats(); s.TimersFailed != 0 {
					t.Errorf("%d timers failed", s.TimersFailed)
				}
			})
		})
	}
}
