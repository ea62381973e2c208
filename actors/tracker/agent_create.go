package tracker

import "fmt"

// CreateAgentIn is a new agent.
type CreateAgentIn struct {
	Name                  string                  `json:"name" rules:"required,min=1,max=200"`
	Provider              Opt[string]             `json:"provider" rules:"nullable,min=1,max=200"`
	Model                 Opt[string]             `json:"model" rules:"nullable,min=1,max=200"`
	IsDefault             bool                    `json:"isDefault"`
	MaxConcurrentSessions Opt[int64]              `json:"maxConcurrentSessions" rules:"nullable,min=1,max=1000"`
	ConcurrencyBy         Opt[[]ConcurrencyField] `json:"concurrencyBy" rules:"max=3"`
	Retry                 Opt[RetryIn]            `json:"retry" rules:"nullable"`
}

// CreateAgent registers an agent (Decision 29).
var CreateAgent = NewCommand[CreateAgentIn, Agent]("CreateAgent", "Register an agent", Needs{Level: Admin}, createAgent, Answers(Created))

func createAgent(tx *Tx, in *CreateAgentIn) (Reply, error) {
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	if in.IsDefault {
		if err := tx.dropDefaultAgent(); err != nil {
			return Reply{}, err
		}
	}
	a := Agent{
		ID: AgentID(id.String()), Name: in.Name, Provider: in.Provider.Ptr(), Model: in.Model.Ptr(),
		IsDefault: in.IsDefault, MaxConcurrentSessions: in.MaxConcurrentSessions.Ptr(), ConcurrencyBy: in.ConcurrencyBy.Value,
		Retry: retryPolicy(&in.Retry),
	}
	if err := tx.addAgent(&a); err != nil {
		return Reply{}, err
	}
	return jsonReply(Created, &a)
}

// dropDefaultAgent takes the mark of the default agent off the agent that has it, if
// any.
func (tx *Tx) dropDefaultAgent() error {
	row, err := tx.firstAgent(true)
	if err != nil || row == nil {
		return err
	}
	a := row.Value
	a.IsDefault, a.UpdatedAt = false, At(tx.now)
	if _, err := agents.Update(tx, row, &a); err != nil {
		return fmt.Errorf("change an agent: %w", err)
	}
	return nil
}
