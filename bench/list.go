package bench

// listLimit is how many issues a list asks for.
const listLimit = 50

// lists gives requests for the newest 50 issues of a workspace under changing
// filters.
func lists(in workspace, host string, connection int) func() []byte {
	filters := []string{
		"", "&status=backlog", "&teamId=" + in.team, "&priority=high&assigneeId=crew-3", "&labelId=label-2&status=backlog",
		"&view=active", "&view=mine", "&projectId=yard-1&hasParent=false", "&isParent=true",
		"&search=" + vocabulary().words[400], "&search=" + vocabulary().words[200] + "%20" + vocabulary().words[300],
	}
	return filteredInTurn(in, host, connection, filters)
}

// filteredInTurn returns requests for lists with each of the filters in turn. Each
// connection begins with another one.
func filteredInTurn(in workspace, host string, connection int, filters []string) func() []byte {
	requests := make([][]byte, len(filters))
	for i, f := range filters {
		requests[i] = request("GET", host, "/workspaces/"+in.id+"/issues?limit=50"+f, in.token, "")
	}
	n := connection
	return func() []byte {
		n++
		return requests[n%len(requests)]
	}
}

// filterLists returns requests for the newest 50 issues of a workspace under combined
// filters. Each filter matches many issues; together they match many, few or none. Every
// eighth request also searches for a word.
func filterLists(in workspace, host string, connection int) func() []byte {
	filters := []string{
		"&status=backlog&priority=medium&teamId=" + in.team, "&priority=high&assigneeId=crew-0", "&priority=low&labelId=label-0&projectId=yard-0",
		"&priority=urgent&assigneeId=crew-0&labelId=label-0&projectId=yard-0", "&view=unassigned&priority=low&hasParent=false",
		"&status=triage&priority=medium", "&view=active&projectId=yard-0&isDraft=false",
		"&priority=medium&labelId=label-1&search=" + vocabulary().words[200],
	}
	return filteredInTurn(in, host, connection, filters)
}

// listFilters asks the large workspace by combined filters.
var listFilters = scenario{
	name: "list-filters", about: "list 50 issues by combined filters, in turn",
	rateTarget: 8000, status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return filterLists(w.read, w.host, connection) },
}

// list asks the large workspace. It should be hardly slower there than in a small one.
var list = scenario{
	name: "list", about: "list 50 issues, filters in turn",
	limit: listSmall.name, target: 0.8, rateTarget: 8000, status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return lists(w.read, w.host, connection) },
}

// listSmall is the limit of list.
var listSmall = scenario{
	name: "list-small", about: "the same lists of a workspace of 1,000 issues",
	status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return lists(w.small, w.host, connection) },
}
