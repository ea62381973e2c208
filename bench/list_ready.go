package bench

// listReady lists the issues that are ready in the filled workspace. It should be as fast as
// a list by status.
var listReady = scenario{
	name: "list-ready", about: "list 50 issues that are ready, behind 5,000 most of which are blocked",
	limit: listStatus.name, target: 0.9, status: 200, filled: true, prepare: fillPlans,
	requests: func(w *world, connection int) func() []byte {
		return filteredInTurn(w.read, w.host, connection, []string{"&ready=true"})
	},
}

// listStatus is the limit of listReady.
var listStatus = scenario{
	name: "list-status", about: "list 50 issues of one status, in the same workspace",
	status: 200, filled: true, prepare: fillPlans,
	requests: func(w *world, connection int) func() []byte {
		return filteredInTurn(w.read, w.host, connection, []string{"&status=backlog"})
	},
}
