package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A node has a few images at once. Another request waits for a while, and stopping waits for all.
func TestImages_FewAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		i := newImages(2)
		for range 2 {
			if !i.begin() {
				t.Fatal("one of two images did not begin")
			}
		}
		asked := time.Now()
		if i.begin() || time.Since(asked) != slotWait {
			t.Errorf("a third image after %s", time.Since(asked))
		}
		time.AfterFunc(slotWait/2, func() { <-i.slot })
		if !i.begin() {
			t.Error("the place of an image that has ended was not taken")
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := i.stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped beside two images: %v", err)
		}
		if i.ctx.Err() == nil {
			t.Error("the images were not told to end")
		}
		<-i.slot
		<-i.slot
		if err := i.stop(t.Context()); err != nil {
			t.Error(err)
		}
		if i.begin() {
			t.Error("an image began after the stop")
		}
	})
}
