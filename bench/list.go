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

// list asks the large workspace. It should not be slower there than in a small
// one, and reach 8,000/s at 16 connections.
var list = scenario{
	name: "list", about: "list 50 issues, filters in turn",
	limit: listSmall.name, target: 0.7, status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return lists(w.read, w.host, connection) },
}

// listSmall is what list is judged by.
var listSmall = scenario{
	name: "list-small", about: "the same lists of a workspace of 1,000 issues",
	status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte { return lists(w.small, w.host, connection) },
}
