package bench

import "time"

// createMany creates issues in many workspaces, which differ in size: durable, with every index
// and the event, before the answer. Its limit is the rate at which Pebble commits batches
// of as many keys and bytes on this disk.
var createMany = scenario{
	name: "create", about: "create an issue, in many workspaces",
	limit: pebbleLimit, target: 0.35, openP99Target: 15 * time.Millisecond, status: 201,
	requests: func(w *world, connection int) func() []byte { return creates(w, w.many, connection) },
}
