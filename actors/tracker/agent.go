package tracker

import (
	"crypto/sha256"
	"fmt"

	"switchyard/storage"
)

// AgentID is the id of an agent. Sessions may have agents that are not registered.
type AgentID string

// unassigned is the agent of sessions for which no agent was found (Decision 29).
const unassigned = "unassigned"

// Agent is a program that works on issues.
type Agent struct {
	ID             AgentID     `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	Provider       *string     `json:"provider"`
	Model          *string     `json:"model"`
	IsDefault      bool        `json:"isDefault"`
	// MaxConcurrentSessions limits the sessions that the agent works on at a time; nil:
	// no limit.
	MaxConcurrentSessions *int64 `json:"maxConcurrentSessions"`
	// ConcurrencyBy are the fields of issues that the agent's sessions have concurrency keys
	// of.
	ConcurrencyBy []ConcurrencyField `json:"concurrencyBy"`
	// Retry is the policy of sessions whose dispatch names none; nil: the defaults.
	Retry     *RetryPolicy `json:"retry"`
	CreatedAt Timestamp    `json:"createdAt"`
	UpdatedAt Timestamp    `json:"updatedAt"`
}

var agents = storage.Table[Agent]{
	ID:   agentTable,
	Name: "agent",
	Key:  func(k storage.Key, a *Agent) storage.Key { return k.DescID(agentKey(string(a.ID))) },
	Indexes: []storage.Index[Agent]{{
		ID:   agentByDefault,
		Name: "default",
		Entries: func(e *storage.Entries, a *Agent) {
			if a.IsDefault {
				e.Add(e.Key())
			}
		},
	}, {
		ID:   agentByAge,
		Name: "age",
		Entries: func(e *storage.Entries, a *Agent) {
			e.Add(e.Key().U64(^uint64(a.CreatedAt.Time().UnixMilli())))
		},
	}},
}

// As many as tokens: most of those of agents come with an agent of their own.
var _ = declareTable(&agents, atMost(10_000, "agents"))

// agentKey returns the 16 bytes that identify an agent in keys: its id if that is a
// UUID, and otherwise a hash of it. The hash is a UUID of version 8, which the service
// never uses for ids.
func agentKey(id string) storage.ID {
	if parsed, ok := storage.ParseID(id); ok {
		return parsed
	}
	sum := sha256.Sum256([]byte(id))
	key := storage.ID(sum[:16])
	key[6] = key[6]&0x0f | 0x80
	key[8] = key[8]&0x3f | 0x80
	return key
}

// agent returns a registered agent, or nil.
func (v *View) agent(id string) (*storage.Row[Agent], error) {
	row, err := agents.Get(v, storage.Key(nil).DescID(agentKey(id)))
	if err != nil {
		return nil, fmt.Errorf("read an agent: %w", err)
	}
	if row == nil || string(row.Value.ID) != id {
		return nil, nil // another id may have the same key
	}
	return row, nil
}

// registerAgentOf registers the agent of a token, unless it is registered (Decision 9).
func (tx *Tx) registerAgentOf(id, name, provider string) error {
	if id == unassigned {
		return nil // the reserved name of no agent
	}
	row, err := agents.Get(tx, storage.Key(nil).DescID(agentKey(id)))
	if err != nil {
		return fmt.Errorf("read an agent: %w", err)
	}
	if row != nil && string(row.Value.ID) == id {
		return nil
	}
	if row != nil {
		return Conflict("Another agent's id has the same key as this one.", "Use another agentId.")
	}
	return tx.addAgent(&Agent{ID: AgentID(id), Name: name, Provider: textOrNil(provider)})
}

// addAgent registers an agent and sets its workspace and times.
func (tx *Tx) addAgent(a *Agent) error {
	if err := tx.countRecord(agentTable, 1); err != nil {
		return err
	}
	if a.ConcurrencyBy == nil {
		a.ConcurrencyBy = []ConcurrencyField{}
	}
	a.OrganizationID = WorkspaceID(tx.Workspace().String())
	a.CreatedAt, a.UpdatedAt = At(tx.order), At(tx.order)
	if _, err := agents.Insert(tx, a); err != nil {
		return fmt.Errorf("register an agent: %w", err)
	}
	return nil
}

// firstAgent returns the newest agent, or the default one with byDefault; nil if there
// is none.
func (v *View) firstAgent(byDefault bool) (row *storage.Row[Agent], err error) {
	var matches []storage.Match
	if byDefault {
		matches = []storage.Match{storage.Equal(agentByDefault, nil)}
	}
	err = agents.List(v, matches, nil, func(_ []byte, rec storage.Record) (_ bool, err error) {
		row, err = agents.Decode(rec)
		return false, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the agents: %w", err)
	}
	return row, nil
}

// agentCount returns the number of registered agents.
func (tx *Tx) agentCount() (uint64, error) {
	return tx.Counter(recordCountTable, storage.ID{15: byte(agentTable)})
}

// pickAgent returns the agent for a session of an issue (Decision 29): the named one,
// or the issue's assignee, or the default one, or the only one. agent is nil if the id
// is not registered.
func (tx *Tx) pickAgent(named string, issue *Issue) (id string, agent *Agent, err error) {
	count, err := tx.agentCount()
	if err != nil {
		return "", nil, err
	}
	if count == 0 {
		if named == "" {
			named = unassigned
		}
		return named, nil, nil
	}
	var row *storage.Row[Agent]
	switch {
	case named != "":
		if row, err = tx.agent(named); row == nil {
			return named, nil, err
		}
	case issue.AssigneeID != nil:
		row, err = tx.agent(*issue.AssigneeID)
	}
	if err == nil && row == nil {
		row, err = tx.firstAgent(true)
	}
	if err == nil && row == nil && count == 1 {
		row, err = tx.firstAgent(false)
	}
	if err != nil || row == nil {
		return unassigned, nil, err
	}
	return string(row.Value.ID), &row.Value, nil
}
