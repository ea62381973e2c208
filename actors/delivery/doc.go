// Package delivery makes the webhook deliveries of the shards that a node owns: it finds
// those that are due, sends each with what package webhook gives, and has the results
// recorded.
//
// Which deliveries there are, and what becomes of one that fails, is decided in package
// tracker, whose rows it reads. It writes nothing itself: Config.Record is a command to the
// workspace's actor.
//
// # Who owns which goroutine
//
// Each Dispatcher has one goroutine for its loop, at most Config.Most for the runs of its
// queues, and one for each workspace's recorder that has results to write. Stop ends them, and so
// does the end of Config.Stopped. All are counted with Config.Enter and Config.Leave.
//
// # Locks
//
// The workspaces with changes, the results that wait to be recorded and the memory for deliveries in
// flight, which all dispatchers of the node share, have a mutex each, and no goroutine waits while it
// holds one. Everything else of a Dispatcher belongs to its loop or
// to the run of a queue, and the two hand it over through a channel.
package delivery
