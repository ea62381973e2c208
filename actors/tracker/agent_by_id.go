package tracker

// AgentByIDIn identifies an agent.
type AgentByIDIn struct {
	ID string `path:"id"`
}

// AgentByID reads one agent.
var AgentByID = NewQuery[AgentByIDIn, Agent]("AgentByID", "Get an agent", Needs{Level: Read}, agentByID)

func agentByID(v *View, in *AgentByIDIn) (Reply, error) {
	row, err := v.agent(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("agent")
	}
	return jsonReply(Done, &row.Value)
}
