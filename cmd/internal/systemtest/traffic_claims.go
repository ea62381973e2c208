package systemtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// verifyClaims has a claim wait at each node, dispatches a session at another one, and looks whether the
// claim is answered with it.
func (t *traffic) verifyClaims(ctx context.Context, s *space) error {
	ctx, cancel := context.WithTimeout(ctx, hearing)
	defer cancel()
	members, path := t.fleet.alive(), "/workspaces/"+s.id
	var agent, issue, session struct {
		ID string `json:"id"`
	}
	first := members[0].Client(s.token)
	if err := first.insist(ctx, path+"/agents", map[string]any{"name": "Claims"}, "claims", &agent); err != nil {
		return err
	}
	for i, m := range members {
		type claim struct {
			Sessions []struct {
				Session struct {
					ID string `json:"id"`
				} `json:"session"`
				LaneToken string `json:"laneToken"`
			} `json:"sessions"`
		}
		var claimed claim
		answered := make(chan error, 1)
		go func() {
			for {
				a, err := m.Client(s.token).Do(ctx, "POST", path+"/agent/sessions/claim", map[string]any{"agentId": agent.ID, "leaseSeconds": 60, "wait": 5})
				switch {
				case err == nil && a.Status == http.StatusOK:
					err = json.Unmarshal(a.Body, &claimed)
				case err == nil && a.Status != http.StatusServiceUnavailable:
					err = fmt.Errorf("a claim: status %d: %s", a.Status, a.Body)
				}
				if err != nil || len(claimed.Sessions) > 0 || !pause(ctx, 20*time.Millisecond) {
					answered <- errors.Join(err, ctx.Err())
					return
				}
			}
		}()
		other, key := members[(i+1)%len(members)].Client(s.token), "claimed-"+m.Name
		if err := other.insist(ctx, path+"/issues", map[string]any{"title": "to be claimed"}, key, &issue); err != nil {
			return err
		}
		if err := other.insist(ctx, path+"/issues/"+issue.ID+"/dispatch", map[string]any{"agentId": agent.ID}, key+"-session", &session); err != nil {
			return err
		}
		if err := <-answered; err != nil {
			return fmt.Errorf("by way of %s: %w", m.Name, err)
		}
		if got := claimed.Sessions[0]; got.Session.ID != session.ID {
			return fmt.Errorf("by way of %s: session %s was claimed, and %s dispatched", m.Name, got.Session.ID, session.ID)
		}
		other.Token = claimed.Sessions[0].LaneToken
		if a, err := other.Do(ctx, "POST", path+"/agent/sessions/"+session.ID+"/report", map[string]any{"status": "completed"}); err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("the session that was claimed by way of %s is not completed: %w, %d %s", m.Name, err, a.Status, a.Body)
		}
	}
	return nil
}
