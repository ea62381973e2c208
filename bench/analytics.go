package bench

// analytics counts the issues of the filled workspace by one field after another.
var analytics = scenario{
	name: "analytics", about: "count all issues by a field, fields in turn",
	status: 200, filled: true,
	requests: func(w *world, connection int) func() []byte {
		fields := []string{"status", "priority", "assigneeId", "teamId", "projectId", "cycleId"}
		requests := make([][]byte, len(fields))
		for i, field := range fields {
			requests[i] = request("GET", w.host, "/workspaces/"+w.read.id+"/issue-analytics?groupBy="+field, w.read.token, "")
		}
		n := connection
		return func() []byte {
			n++
			return requests[n%len(requests)]
		}
	},
}
