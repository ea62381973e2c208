package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// flakyDoer answers 201 except between two times, when it fails.
type flakyDoer struct{ from, to time.Time }

func (f *flakyDoer) do([]byte) (int, []byte, error) {
	now := time.Now()
	if now.After(f.from) && now.Before(f.to) {
		return 0, nil, errors.New("gone")
	}
	return 201, nil, nil
}

func (*flakyDoer) close() {}

func TestFailoverWriter_MeasuresTheLongestGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		outage := &flakyDoer{from: began.Add(time.Second), to: began.Add(3 * time.Second)}
		f := &failoverWriter{nodes: []doer{outage, outage}, next: func() []byte { return nil }, pause: 50 * time.Millisecond}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); f.run(ctx) }()
		time.Sleep(900 * time.Millisecond) // the bubble's clock
		f.reset()
		time.Sleep(4 * time.Second)
		if gap := f.gap(); gap < 1900*time.Millisecond || gap > 2100*time.Millisecond {
			t.Errorf("the longest gap is %s, want 2s", gap)
		}
		if err := awaitWrites(ctx, []*failoverWriter{f}, time.Now()); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
	})
}

// The dying node acknowledges a write, and the next one comes long after the clients were watched.
func TestKillOne_WaitsForAWriteBehindTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const outage = 4 * watchFailover
		f := &failoverWriter{}
		again := &Process{}
		c := &Cluster{Nodes: []*Process{{
			Kill: func() {
				time.Sleep(time.Millisecond) // the bubble's clock
				f.acknowledged()
				time.AfterFunc(outage, f.acknowledged)
			},
			Again: func(context.Context) (*Process, error) { return again, nil },
		}}}
		gap, err := killOne(t.Context(), c, 0, []*failoverWriter{f})
		if err != nil || gap != outage || c.Nodes[0] != again {
			t.Errorf("no acknowledged write for %s, %v; want %s", gap, err, outage)
		}
	})
}

func TestFailoverConfig_IsChecked(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*FailoverConfig){
		"nodes: 2":       func(c *FailoverConfig) { c.Nodes = 2 },
		"kills: 0":       func(c *FailoverConfig) { c.Kills = 0 },
		"workspaces: -1": func(c *FailoverConfig) { c.Workspaces = -1 },
		"pause: 2s":      func(c *FailoverConfig) { c.Pause = 2 * time.Second },
	} {
		cfg := defaultFailover()
		change(&cfg)
		if _, err := RunFailover(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q in it", err, text)
		}
	}
	cfg := defaultFailover()
	if err := cfg.check(); err != nil {
		t.Error(err)
	}
}

// defaultFailover is the configuration without flags.
func defaultFailover() FailoverConfig {
	return FailoverConfig{Nodes: 3, Kills: 20, Workspaces: 24, Pause: 50 * time.Millisecond, Shards: 18, Dir: "."}
}
