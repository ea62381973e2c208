package bench

// listLimit is how many issues a list asks for.
const listLimit = 50

// list asks for the newest 50 issues under changing filters. No limit is measured
// for it; the report says how many it should reach at 16 connections.
var list = scenario{
	name: "list", about: "list 50 issues, filters in turn",
	status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte {
		filters := []string{"", "&status=backlog", "&teamId=" + w.read.team, "&priority=high&assigneeId=crew-3", "&labelId=load&status=backlog"}
		requests := make([][]byte, len(filters))
		for i, f := range filters {
			requests[i] = request("GET", w.host, "/workspaces/"+w.read.id+"/issues?limit=50"+f, w.read.token, "")
		}
		n := connection
		return func() []byte {
			n++
			return requests[n%len(requests)]
		}
	},
}
