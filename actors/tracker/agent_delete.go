package tracker

import "fmt"

// DeleteAgent takes an agent out of the register. Its sessions stay as they are.
var DeleteAgent = NewCommand[AgentByIDIn, None]("DeleteAgent", "Delete an agent", Needs{Level: Admin}, deleteAgent, WithRoom(Frees))

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
	if err := tx.tally(agentTable, -1); err != nil {
		return Reply{}, err
	}
	// What its bound held back can be claimed now, by whoever claims for anyone.
	return Reply{Outcome: NoContent}, tx.wakeFreed(in.ID, maxConcurrent-room(&row.Value))
}
