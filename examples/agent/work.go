package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// progress is the agent's checkpoint: an agent that dies is followed by one that goes on from it.
type progress struct {
	Steps int `json:"steps"` // that are done
	Parts int `json:"parts"` // that were handed to children
}

// work is the agent's actual work: replace it. This one thinks, asks or splits its work when its
// instructions say so, and takes its time. It returns the session's result; an error
// fails the session. It must end soon after ctx does, which ends when the session is
// lost or the process has to stop.
func (a *agent) work(ctx context.Context, l *lane) (string, error) {
	var done progress
	if err := json.Unmarshal(l.Checkpoint, &done); len(l.Checkpoint) > 0 && err != nil {
		return "", fmt.Errorf("read the checkpoint: %w", err)
	}
	instructions := "none"
	if l.Instructions != nil {
		instructions = *l.Instructions
	}
	if done == (progress{}) {
		if err := a.begin(ctx, l, instructions); err != nil {
			return "", err
		}
	}
	answer := ""
	if strings.Contains(strings.ToLower(instructions), "ask") && done == (progress{}) {
		var err error
		if answer, err = l.ask(ctx, "May I go on with "+l.Issue.Identifier+"?"); err != nil {
			return "", err
		}
	}
	if strings.Contains(strings.ToLower(instructions), "split") {
		return a.split(ctx, l, done)
	}
	const steps = 3
	for ; done.Steps < steps; done.Steps++ {
		if err := pause(ctx, a.step); err != nil {
			return "", err
		}
		if _, err := l.log(ctx, "action", fmt.Sprintf("Step %d of %d.", done.Steps+1, steps)); err != nil {
			return "", err
		}
		if err := l.save(ctx, progress{Steps: done.Steps + 1}); err != nil {
			return "", err
		}
	}
	result := fmt.Sprintf("Did %q in %d steps.", l.Issue.Title, steps)
	if answer != "" {
		result += " I was told: " + answer
	}
	return result, nil
}

// begin logs what is to be done, and what came of the work that this was queued after.
func (a *agent) begin(ctx context.Context, l *lane, instructions string) error {
	if _, err := l.log(ctx, "thought", "To do: "+l.Issue.Title+". Instructions: "+instructions); err != nil {
		return err
	}
	for _, before := range l.Predecessors {
		if before.Result == nil {
			continue
		}
		if _, err := l.log(ctx, "thought", "Done before: "+*before.Result); err != nil {
			return err
		}
	}
	return nil
}

// split hands the work to children and waits for them. The session is claimed again when
// they have ended, maybe by another process, and their results become its own.
func (a *agent) split(ctx context.Context, l *lane, done progress) (string, error) {
	const parts = 3
	for ; done.Parts < parts; done.Parts++ {
		if err := l.spawn(ctx, fmt.Sprintf("%s, part %d", l.Issue.Title, done.Parts+1)); err != nil {
			return "", err
		}
		if err := l.save(ctx, progress{Parts: done.Parts + 1}); err != nil {
			return "", err
		}
	}
	results, open, err := l.results(ctx)
	if err == nil && open {
		err = l.join(ctx)
	}
	return strings.Join(results, " "), err
}
