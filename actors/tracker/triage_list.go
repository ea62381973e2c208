package tracker

// ListTriage lists the issues awaiting triage that satisfy every filter.
var ListTriage = NewQuery[ListIssuesIn, IssuePage]("ListTriage", "List issues awaiting triage", Needs{Read, "issues"}, listTriage, Filters, TakesATurn)

func listTriage(v *View, in *ListIssuesIn) (Reply, error) {
	return v.listIssues(in, statusesOf(StatusTriage), "triage")
}
