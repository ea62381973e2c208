package tracker

import "fmt"

// DeleteAgent removes an agent from the register. Its sessions stay unchanged.
var DeleteAgent = NewCommand[AgentByIDIn, None]("DeleteAgent", "Delete an agent", Needs{Level: Admin}, deleteAgent, WithSpaceEffect(FreesSpace))

func deleteAgent(tx *Tx, in *AgentByIDIn) (Reply, error) {
	row, err := tx.agent(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("agent")
	}
	if err := agents.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("delete an agent: %w", err)
	}
	if err := tx.countRecord(agentTable, -1); err != nil {
		return Reply{}, err
	}
	if _, err := tx.dropBudget(budgetScope{usageOfAgent, in.ID}); err != nil {
		return Reply{}, err
	}
	// Without the agent's limit more of its sessions can be claimed.
	return Reply{Outcome: NoContent}, tx.wakeFreed(in.ID, room(&Agent{})-room(&row.Value))
}
