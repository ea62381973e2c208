package bench

// createLarge creates issues in the workspace that was filled: what an issue costs
// should not depend on how many there are.
var createLarge = scenario{
	name: "create-large", about: "create an issue, in the filled workspace",
	limit: createHot.name, target: 0.8, status: 201, filled: true,
	requests: func(w *world, connection int) func() []byte {
		return creates(w, []workspace{w.read}, connection)
	},
}
