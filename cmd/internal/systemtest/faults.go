package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fault is something that happens to a fleet and passes: strike makes it happen
// and heal undoes it.
type fault struct {
	name string
	// hold is how long it lasts.
	hold   time.Duration
	strike func(ctx context.Context, f *Fleet, victim *Member) error
	heal   func(ctx context.Context, f *Fleet, victim *Member) error
}

// faults of a fleet of at least three. Pauses are as long as asked.
func faults(pause time.Duration) []fault {
	mend := func(_ context.Context, f *Fleet, _ *Member) error { f.Mend(); return nil }
	return []fault{
		{
			name: "kill -9", hold: 3 * time.Second,
			strike: func(_ context.Context, _ *Fleet, m *Member) error { m.Kill(); return nil },
			heal:   func(_ context.Context, _ *Fleet, m *Member) error { return m.Start() },
		},
		{
			name: "kill -9 and at once back", hold: 0,
			strike: func(_ context.Context, _ *Fleet, m *Member) error { m.Kill(); return nil },
			heal:   func(_ context.Context, _ *Fleet, m *Member) error { return m.Start() },
		},
		{
			name: "pause", hold: pause,
			strike: func(_ context.Context, _ *Fleet, m *Member) error { return m.Pause() },
			heal:   func(_ context.Context, _ *Fleet, m *Member) error { return m.Resume() },
		},
		{
			name: "cut off", hold: 6 * time.Second,
			strike: func(_ context.Context, f *Fleet, m *Member) error { f.Isolate(m); return nil },
			heal:   mend,
		},
		{
			name: "one link cut", hold: 4 * time.Second,
			strike: func(_ context.Context, f *Fleet, m *Member) error {
				f.Cut(m, f.other(m))
				return nil
			},
			heal: mend,
		},
		{
			name: "deaf", hold: 4 * time.Second, // it sends and hears nothing
			strike: func(_ context.Context, f *Fleet, m *Member) error {
				for _, o := range f.members {
					if o != m {
						f.CutOneWay(o, m)
					}
				}
				return nil
			},
			heal: mend,
		},
		{
			name: "graceful restart", hold: 0,
			strike: func(ctx context.Context, _ *Fleet, m *Member) error {
				ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
				defer cancel()
				return m.Terminate(ctx)
			},
			heal: func(_ context.Context, _ *Fleet, m *Member) error { return m.Start() },
		},
		{
			name: "drained and back", hold: 2 * time.Second,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				return f.other(m).drain(ctx, m)
			},
			heal: func(ctx context.Context, f *Fleet, m *Member) error {
				return f.other(m).operate(ctx, "POST", "/cluster/nodes/"+m.Name+"/undrain")
			},
		},
	}
}

// other is the member after m.
func (f *Fleet) other(m *Member) *Member { return f.members[m.n%len(f.members)] }

// machine is the directory that names the faults of the node's machine, which only a binary with
// the tag faults knows.
func (m *Member) machine() string { return filepath.Join(m.fleet.Dir, m.Name+".faults") }

// operate sends an operator's request, again while the answer is 503.
func (m *Member) operate(ctx context.Context, method, path string) error {
	c := m.Client(m.fleet.Root)
	for {
		a, err := c.Do(ctx, method, path, nil)
		switch {
		case err == nil && a.Status < 300:
			return nil
		case err == nil && a.Status != 503:
			return fmt.Errorf("%s %s: status %d: %s", method, path, a.Status, a.Body)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("%s %s: %w (last: %w, %s)", method, path, ctx.Err(), err, a.Body)
		}
	}
}

// pause lets time pass; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// chosen returns the faults of the names, which are separated by commas; all of them
// if there are no names.
func chosen(all []fault, names string) ([]fault, error) {
	if names == "" {
		return all, nil
	}
	var some []fault
	for name := range strings.SplitSeq(names, ",") {
		at := slices.IndexFunc(all, func(f fault) bool { return f.name == strings.TrimSpace(name) })
		if at < 0 {
			known := make([]string, len(all))
			for i := range all {
				known[i] = all[i].name
			}
			return nil, fmt.Errorf("%q is no fault; there are: %s", name, strings.Join(known, ", "))
		}
		some = append(some, all[at])
	}
	return some, nil
}

// storm strikes with one fault after another until its time is up, and waits after
// each until the fleet stands again. Not later than standWithin after the last one, every
// shard has its owner and all of its voters. It tells what it does.
func storm(ctx context.Context, f *Fleet, all []fault, rng *rand.Rand, length time.Duration, voters int, tell func(string, ...any)) error {
	f.choices, f.tell = rng, tell
	began, healed := time.Now(), time.Time{}
	for round := 0; round == 0 || time.Since(began) < length; round++ {
		// Every kind once before any comes again, in an order of the seed's.
		if round%len(all) == 0 {
			rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		now := all[round%len(all)]
		victim := f.members[rng.IntN(len(f.members))]
		tell("%6.1fs %s: %s", time.Since(began).Seconds(), victim.Name, now.name)
		if err := now.strike(ctx, f, victim); err != nil {
			return fmt.Errorf("%s, %s: %w", victim.Name, now.name, err)
		}
		if !pause(ctx, now.hold) {
			return ctx.Err()
		}
		if err := now.heal(ctx, f, victim); err != nil {
			return fmt.Errorf("%s, %s: %w", victim.Name, now.name, err)
		}
		healed = time.Now()
		if err := f.stand(ctx, voters); err != nil {
			return fmt.Errorf("after %s, %s: %w", victim.Name, now.name, err)
		}
	}
	ctx, cancel := context.WithDeadline(ctx, healed.Add(standWithin))
	defer cancel()
	for _, m := range f.members {
		if err := m.Await(ctx, "every shard has all of its voters", Settled(voters)); err != nil {
			return fmt.Errorf("after the last fault: %w", err)
		}
	}
	return nil
}

// standWithin is how long a fleet may take to stand again after a fault.
const standWithin = time.Minute

// stand waits until every member is ready and the cluster is whole.
func (f *Fleet) stand(ctx context.Context, voters int) error {
	ctx, cancel := context.WithTimeout(ctx, standWithin)
	defer cancel()
	for _, m := range f.members {
		if err := m.WaitReady(ctx); err != nil {
			return err
		}
	}
	whole := func(v ClusterView) bool {
		for _, s := range v.Shards {
			// Writes in progress cause a small lag, which does not count.
			if s.Leader == "" || len(s.Voters) < voters || len(s.Failed) > 0 || s.Lag > 1000 {
				return false
			}
		}
		return len(v.Shards) > 0
	}
	for _, m := range f.members {
		if err := m.Await(ctx, "it stands", whole); err != nil {
			return err
		}
	}
	return nil
}
