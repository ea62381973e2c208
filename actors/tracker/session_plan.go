package tracker

import (
	"bytes"
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// maxPlan limits the steps of a plan.
const maxPlan = 100

// PlanStep is one step of an agent's plan (Decision 65).
type PlanStep struct {
	ID     string `json:"id" rules:"required,min=1,max=64"`
	Title  string `json:"title" rules:"required,min=1,max=500"`
	Status string `json:"status" rules:"required" enum:"pending,in_progress,completed,canceled"`
}

// planFaults adds the faults of a plan that its tags can't express.
func planFaults(plan *Opt[[]PlanStep], faults *Faults) {
	known := make(map[string]bool, len(plan.Value))
	for i := range plan.Value {
		id := plan.Value[i].ID
		if id != "" && known[id] {
			faults.Add(fmt.Sprintf("plan[%d].id", i), "Is the id of an earlier step.")
		}
		known[id] = true
	}
}

// setPlan replaces the session's plan, if one is given. It has a row of its own, so that
// a heartbeat does not write it again.
func (c *sessionChange) setPlan(given *Opt[[]PlanStep]) error {
	if !given.Set {
		return nil
	}
	id := c.s.id()
	before, err := c.tx.plan(id)
	if err != nil || slices.Equal(before, given.Value) && c.s.Inner.Plan {
		return err
	}
	body, err := json.MarshalWithOption(given.Value, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode a plan: %w", err)
	}
	if err := c.tx.Writer().SetValue(planTable, id[:], body); err != nil {
		return fmt.Errorf("store a plan: %w", err)
	}
	change := Change{Field: "plan", To: json.RawMessage(body)}
	if before != nil {
		change.From = before
	}
	c.changes = append(c.changes, change)
	c.s.Inner.Plan, c.progress = true, true
	return nil
}

// plan returns the plan of a session, or nil.
func (v *View) plan(session storage.ID) (plan []PlanStep, err error) {
	body, err := v.Value(planTable, session[:], nil)
	if err == nil && body != nil {
		err = json.Unmarshal(body, &plan)
	}
	if err != nil {
		return nil, fmt.Errorf("read a session's plan: %w", err)
	}
	return plan, nil
}

// hasPlan reports whether a stored session has a plan.
func hasPlan(rec storage.Record) bool {
	return bytes.Contains(innerPart(rec.JSON()), []byte(`,"plan":true`))
}

// appendPlan puts the session's plan in front of the closing brace of its JSON.
func (v *View) appendPlan(b []byte, rec storage.Record) ([]byte, error) {
	b = append(b[:len(b)-1], `,"plan":`...)
	if !hasPlan(rec) {
		return append(b, "null}"...), nil
	}
	id, _ := storage.ParseID(storedText(rec.JSON(), "id"))
	body, err := v.Value(planTable, id[:], nil)
	if err != nil {
		return b, fmt.Errorf("read a session's plan: %w", err)
	}
	return append(append(b, body...), '}'), nil
}
