package tracker

import "fmt"

// PatchAgentIn changes an agent. Absent fields stay as they are.
type PatchAgentIn struct {
	ID                    string                  `path:"id"`
	Name                  Opt[string]             `json:"name" rules:"min=1,max=200"`
	Provider              Opt[string]             `json:"provider" rules:"nullable,min=1,max=200"`
	Model                 Opt[string]             `json:"model" rules:"nullable,min=1,max=200"`
	IsDefault             Opt[bool]               `json:"isDefault"`
	MaxConcurrentSessions Opt[int64]              `json:"maxConcurrentSessions" rules:"nullable,min=1,max=1000"`
	ConcurrencyBy         Opt[[]ConcurrencyField] `json:"concurrencyBy" rules:"nullable,max=3"`
	Retry                 Opt[RetryIn]            `json:"retry" rules:"nullable"`
}

// PatchAgent changes an agent. Its existing sessions keep the provider and model that
// they were dispatched with.
var PatchAgent = NewCommand[PatchAgentIn, Agent]("PatchAgent", "Change an agent", Needs{Level: Admin}, patchAgent)

func patchAgent(tx *Tx, in *PatchAgentIn) (Reply, error) {
	row, err := tx.agent(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("agent")
	}
	a := row.Value
	a.Name = in.Name.Or(a.Name)
	a.IsDefault = in.IsDefault.Or(a.IsDefault)
	assign(&a.Provider, &in.Provider)
	assign(&a.Model, &in.Model)
	assign(&a.MaxConcurrentSessions, &in.MaxConcurrentSessions)
	if in.ConcurrencyBy.Set {
		a.ConcurrencyBy = in.ConcurrencyBy.Or([]ConcurrencyField{})
	}
	if a.ConcurrencyBy == nil { // stored by an earlier version
		a.ConcurrencyBy = []ConcurrencyField{}
	}
	if in.Retry.Set {
		a.Retry = retryPolicy(&in.Retry)
	}
	if a.IsDefault && !row.Value.IsDefault {
		if err := tx.dropDefaultAgent(); err != nil {
			return Reply{}, err
		}
	}
	a.UpdatedAt = At(tx.now)
	body, err := agents.Update(tx, row, &a)
	if err != nil {
		return Reply{}, fmt.Errorf("change an agent: %w", err)
	}
	return Reply{Body: body}, tx.wakeFreed(in.ID, room(&a)-room(&row.Value))
}

// room returns the limit of an agent's concurrent sessions. No limit is twice the highest one,
// so that there is more room without any limit.
func room(a *Agent) int {
	if a.MaxConcurrentSessions == nil {
		return 2 * maxConcurrent
	}
	return int(*a.MaxConcurrentSessions)
}

// maxConcurrent is the highest limit that an agent can have.
const maxConcurrent = 1000
