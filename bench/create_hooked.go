package bench

import (
	"context"
	"fmt"
	"time"
)

// createHooked is createHot in a workspace with three webhooks, whose receiver takes
// its share of the machine too. Deliveries give way to requests that wait, and come
// after: see deliver.
var createHooked = scenario{
	name: "create-hooked", about: "create an issue, all in one workspace with 3 webhooks",
	target: 0.6, status: 201,
	requests: func(w *world, connection int) func() []byte {
		return creates(w, []workspace{w.hooked}, connection)
	},
	beside: func(ctx context.Context, w *world) (func() string, error) {
		h, err := hook(ctx, w, nil)
		if err != nil {
			return nil, err
		}
		began, before := time.Now(), h.receiver.took.Load()
		return func() string {
			said := fmt.Sprintf("%.0f deliveries/s", float64(h.receiver.took.Load()-before)/time.Since(began).Seconds())
			if err := h.remove(); err != nil {
				said += "; " + err.Error()
			}
			return said
		}, nil
	},
}
