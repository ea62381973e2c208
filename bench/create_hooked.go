package bench

// createHooked is createHot in a workspace with three webhooks, whose receiver takes
// its share of the machine too.
var createHooked = scenario{
	name: "create-webhooks", about: "create an issue, all in one workspace with 3 webhooks",
	limit: "create-hot", target: 0.6, status: 201, hooked: true,
	requests: func(w *world, connection int) func() []byte {
		return creates([]workspace{w.hooked}, w.host, connection)
	},
}
