package top

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRead_ANodeThatHangsIsLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		r := NewReader(func(ctx context.Context, path string) ([]byte, error) {
			if path == "/cluster/nodes/node-3/load" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return api.get(ctx, path)
		}, time.Now)
		began := time.Now()
		got, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != loadWithin || got.Loads["node-1"] == nil || got.Loads["node-3"] != nil || got.Silent["node-3"] != "no answer" {
			t.Errorf("after %s: %v", took, got.Silent)
		}
	})
}

func TestRead_RemembersSlugs(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	s := afterTwo(t, api)
	if got := s.now.Busiest; len(got) != 2 || got[0].Slug != "acme" || got[0].Reads != 90 || got[0].Writes != 10 || got[1].Reads != 3 || got[1].Writes != 0.5 || got[1].Node != "node-1" || got[0].Slowest != 4*time.Millisecond || got[1].Slowest != 1250*time.Millisecond {
		t.Errorf("%+v", got)
	}
	if n := api.count("/workspaces/" + secondWorkspace); n != 1 {
		t.Errorf("asked %d times for a slug", n)
	}
	if n := api.count("/workspaces/" + firstWorkspace); n != 2 {
		t.Errorf("asked %d times for one that was refused", n)
	}
	if n := api.count("/cluster/nodes/node-2/load"); n != 0 {
		t.Error("asked a dead node")
	}
}

// A node that was started anew has no rates until the next reading.
func TestRates_OfANodeStartedAnew(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	api.set("/cluster/nodes/node-3/load", func(look int) (string, error) {
		body := loadBody("node-3", look, "")
		if look > 1 {
			body = strings.Replace(body, "12:00:00", "12:30:00", 1)
		}
		return body, nil
	})
	s := afterTwo(t, api)
	if got := ratesOf(s.before.load("node-3"), s.now.load("node-3")); perSecond(got.answered) != "-" || share(got.cpu) != "-" {
		t.Errorf("%+v", got)
	}
	if sum := totalsOf(s.before, s.now); sum.answered != 500 {
		t.Errorf("the sum is %v", sum.answered)
	}
}

func TestOnce_ReturnsTheError(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	failed := errors.New("no")
	api.set("/cluster", func(int) (string, error) { return "", failed })
	var out strings.Builder
	if err := Once(t.Context(), newReader(api), time.Second, &out); !errors.Is(err, failed) || out.Len() > 0 {
		t.Errorf("%v %q", err, out.String())
	}
}
