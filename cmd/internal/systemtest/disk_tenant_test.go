package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The answer of a small issue's creation for somebody who did nothing wrong.
func (l *diskLoad) accepted(ref string) bool {
	before, _ := l.counts()
	l.create(ref)
	after, _ := l.counts()
	return after > before
}

// TestDiskFull_OperatorDeletesTheTenantThatFilledIt: without a limit one workspace
// fills the disk with patches of a large issue. Below the reserve the operator can
// still delete it, its space comes back by itself, and the others' changes are taken.
func TestDiskFull_OperatorDeletesTheTenantThatFilledIt(t *testing.T) {
	t.Parallel()
	disk, mounted := mountSmall(t)
	if !mounted {
		return
	}
	const root = "the-operators-own-token"
	p, err := Launch(t.Context(), binary(t), disk.data, []string{"SWITCHYARD_ROOT_TOKEN=" + root}, "--limit-bytes", "0", "--limit-answer-bytes", "0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { p.Kill() }()
	victim := newDiskLoad(t, p)
	if !victim.accepted("before") {
		t.Fatal("nothing is taken by an empty node")
	}
	attacker := NewClient(p.URL, "", 4)
	o, err := attacker.Onboard(t.Context(), "Attacker", "attacker")
	if err != nil {
		t.Fatal(err)
	}
	attacker.Token = o.Token.Token
	issues := "/workspaces/" + o.Workspace.ID + "/issues"
	// Text that compresses badly.
	var text strings.Builder
	for n := uint64(1); text.Len() < 250_000; n++ {
		fmt.Fprintf(&text, "%016x", n*0x9e3779b97f4a7c15)
	}
	made, err := attacker.Do(t.Context(), "POST", issues, map[string]any{"title": "Large", "description": text.String()})
	if err != nil || made.Status != http.StatusCreated {
		t.Fatalf("%d %s, %v", made.Status, made.Body, err)
	}
	id := string(made.Body[len(`{"id":"`):][:36])
	filled := false
	for n := 0; n < 20_000 && !filled; n++ {
		answer, err := attacker.Do(t.Context(), "PATCH", issues+"/"+id, map[string]any{"priority": []string{"high", "low"}[n%2]})
		if err != nil {
			t.Fatal(err)
		}
		filled = answer.Status == http.StatusServiceUnavailable
	}
	if !filled || victim.accepted("while full") {
		t.Fatalf("the disk is not full: %t", filled)
	}
	operator := NewClient(p.URL, root, 1)
	answer, err := operator.Do(t.Context(), "DELETE", "/workspaces/"+o.Workspace.ID, nil)
	if err != nil || answer.Status != http.StatusOK {
		t.Fatalf("the operator's deletion: %d %s, %v", answer.Status, answer.Body, err)
	}
	deadline := time.Now().Add(5 * time.Minute)
	for n := 0; !victim.accepted(fmt.Sprint("after ", n)); n++ {
		if time.Now().After(deadline) {
			t.Fatal("the space of the deleted workspace did not come back")
		}
	}
	victim.check(t)
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), binary(t), disk.data); err != nil {
		t.Fatal(err)
	}
}
