package tracker

// AgentList is the answer to ListAgents.
type AgentList struct {
	Agents     []Agent `json:"agents"`
	NextCursor string  `json:"nextCursor,omitempty"`
}

// ListAgents lists the registered agents, newest first.
var ListAgents = NewQuery[PageIn, AgentList]("ListAgents", "List agents", Needs{Level: Read}, listAgents, FromSnapshot)

func listAgents(v *View, in *PageIn) (Reply, error) {
	return listByAge(v, in, "agents", agentByAge, &agents)
}
