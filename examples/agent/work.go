package main

import (
	"context"
	"fmt"
	"strings"
)

// work is the agent's actual work: replace it. This one thinks, asks when its
// instructions say so, and takes its time. It returns the session's result; an error
// fails the session. It must end soon after ctx does, which ends when the session is
// lost or the process has to stop.
func (a *agent) work(ctx context.Context, l *lane) (string, error) {
	instructions := "none"
	if l.Instructions != nil {
		instructions = *l.Instructions
	}
	if _, err := l.log(ctx, "thought", "To do: "+l.Issue.Title+". Instructions: "+instructions); err != nil {
		return "", err
	}
	answer := ""
	if strings.Contains(strings.ToLower(instructions), "ask") {
		var err error
		if answer, err = l.ask(ctx, "May I go on with "+l.Issue.Identifier+"?"); err != nil {
			return "", err
		}
	}
	const steps = 3
	for i := range steps {
		if err := pause(ctx, a.step); err != nil {
			return "", err
		}
		if _, err := l.log(ctx, "action", fmt.Sprintf("Step %d of %d.", i+1, steps)); err != nil {
			return "", err
		}
	}
	result := fmt.Sprintf("Did %q in %d steps.", l.Issue.Title, steps)
	if answer != "" {
		result += " I was told: " + answer
	}
	return result, nil
}
