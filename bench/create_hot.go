package bench

// createHot creates issues in one workspace, whose commands run one after another:
// what group commit is for.
var createHot = scenario{
	name: "create-hot", about: "create an issue, all in one workspace",
	limit: "create", target: 0.7, status: 201,
	requests: func(w *world, connection int) func() []byte {
		return creates(w, []workspace{w.hot}, connection)
	},
}
