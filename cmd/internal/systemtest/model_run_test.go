package systemtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/internal/testkit"
)

// modelSteps is how many random operations TestModel does: SWITCHYARD_MODEL_STEPS,
// or as many as the tests of every change can afford.
func modelSteps() int {
	if steps, err := strconv.Atoi(os.Getenv("SWITCHYARD_MODEL_STEPS")); err == nil {
		return steps
	}
	return 1600
}

// modelLife is how many steps a workspace lives; then another begins.
const modelLife = 400

// TestModel does at random what several people and an agent can do to the issues of
// a workspace, and compares every answer with the model's, and every few steps what
// each of them can read. Each workspace lives through a restart of the node.
func TestModel(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	keep := func(cfg *node.Config) { cfg.Data = data }
	n, stop := stoppable(t, keep)
	s := testkit.Seed(t)
	for life, left := 0, modelSteps(); left > 0; life++ {
		r := rand.New(rand.NewPCG(s, uint64(life)))
		run := newModelRun(t, "http://"+n.HTTPAddr(), fmt.Sprintf("model-%d", life), r)
		for i := range min(left, modelLife) {
			if i == modelLife/2 {
				stop()
				n, stop = stoppable(t, keep)
				run.follow("http://" + n.HTTPAddr())
			}
			run.step()
			for range 4 {
				run.compareOne()
			}
			if r.IntN(100) == 0 {
				run.compareAll()
			}
		}
		run.compareAll()
		run.compareSimilar()
		left -= modelLife
	}
}

// modelRun drives a workspace and its model side by side.
type modelRun struct {
	*testing.T
	*rand.Rand
	m       *model
	callers []*modelCaller
	owner   *modelCaller
	keys    []string // of teams, by the order they were made
	gone    []string // ids of deleted issues
	began   time.Time
	log     []string // what was done last
}

func newModelRun(t *testing.T, base, slug string, r *rand.Rand) *modelRun {
	t.Helper()
	anybody := NewClient(base, "", 2)
	home, err := anybody.Onboard(t.Context(), "Model", slug)
	if err != nil {
		t.Fatal(err)
	}
	run := &modelRun{T: t, Rand: r, began: time.Now().UTC(), m: &model{
		workspace: home.Workspace.ID, teams: map[string]*modelTeam{}, defaultTeam: home.Workspace.DefaultTeamID,
		templates: map[string]object{}, cycles: map[string]modelCycle{},
	}}
	run.owner = &modelCaller{Client: NewClient(base, home.Token.Token, 2), name: "owner", kind: "user", admin: true}
	run.callers = append(run.callers, run.owner)
	run.owner.id = run.made("GET", "", nil, "ownerId")
	add := func(c modelCaller, token object) {
		token["name"], token["permissions"] = c.name, "write"
		c.Client = NewClient(base, run.made("POST", "/tokens", token, "token"), 2)
		run.callers = append(run.callers, &c)
	}
	add(modelCaller{name: "owner with a token to write", id: run.owner.id, kind: "user"}, object{})
	for _, role := range []string{"member", "guest"} {
		id := run.made("POST", "/members", object{"name": role, "role": role}, "userId")
		add(modelCaller{name: role, id: id, kind: "user", guest: role == "guest"}, object{"userId": id})
	}
	add(modelCaller{name: "agent", id: "bot", kind: "agent"}, object{"agentId": "bot", "actorType": "agent"})

	run.addTeam(run.m.defaultTeam, run.made("GET", "/teams/"+run.m.defaultTeam, nil, "key"), true)
	for _, team := range []struct {
		key    string
		public bool
	}{{"WEB", true}, {"DEN", false}, {"PIT", false}, {"CREW", true}} {
		id := run.made("POST", "/teams", object{"name": team.key, "key": team.key, "isPublic": team.public}, "id")
		run.addTeam(id, team.key, team.public)
	}
	run.addCycle("planned", modelCycle{})
	run.addCycle("begun", modelCycle{started: true, starts: -3, ended: true, ends: 4})
	run.addCycle("over", modelCycle{started: true, starts: -9, ended: true, ends: -2})
	run.addCycle("to come", modelCycle{started: true, starts: 3})
	for _, fields := range []object{
		{"status": "todo", "priority": "high", "labelIds": []string{"red"}, "estimate": 3.0, "description": "tracks and boxes"},
		{"teamId": run.keys[2], "isDraft": true, "assigneeId": "bot", "cycleId": "c1"},
	} {
		body := object{"name": "A template"}
		for name, value := range fields {
			body[name] = value
		}
		run.m.templates[run.made("POST", "/templates", body, "id")] = fields
	}
	return run
}

// made does something as the owner and gives a field of the answer.
func (run *modelRun) made(method, path string, body any, field string) string {
	run.Helper()
	answer := run.do(run.owner, method, path, body)
	if answer.Status >= 300 {
		run.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return decodeInto[object](run, answer)[field].(string)
}

// follow has the callers turn to the node at another address.
func (run *modelRun) follow(base string) {
	run.log = append(run.log, "the node was restarted")
	for _, c := range run.callers {
		c.HTTP.CloseIdleConnections()
		c.URL = base
	}
}

func (run *modelRun) addTeam(id, key string, public bool) {
	team := &modelTeam{key: key, public: public, members: map[string]bool{}}
	team.members[run.owner.id] = !public // the caller that makes a team private becomes its member
	run.m.teams[id] = team
	run.keys = append(run.keys, id)
}

func (run *modelRun) addCycle(name string, span modelCycle) {
	body := object{"name": name}
	if span.started {
		body["startsAt"] = run.began.AddDate(0, 0, span.starts).Format(time.RFC3339)
	}
	if span.ended {
		body["endsAt"] = run.began.AddDate(0, 0, span.ends).Format(time.RFC3339)
	}
	run.m.cycles[run.made("POST", "/cycles", body, "id")] = span
}

func decodeInto[T any](run *modelRun, answer Answer) (out T) {
	run.Helper()
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		run.fail("%v in %s", err, answer.Body)
	}
	return out
}

func (run *modelRun) do(c *modelCaller, method, path string, body any, headers ...string) Answer {
	run.Helper()
	answer, err := c.Do(run.Context(), method, "/workspaces/"+run.m.workspace+path, body, headers...)
	if err != nil {
		run.fail("%v", err)
	}
	return answer
}

// fail ends the test and tells how it came to this.
func (run *modelRun) fail(format string, args ...any) {
	run.Helper()
	run.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(run.log[max(0, len(run.log)-25):], "\n"))
}

// step does one thing at random.
func (run *modelRun) step() {
	c := run.callers[run.IntN(len(run.callers))]
	switch dice := run.IntN(100); {
	case dice < 30 || len(run.m.issues) < 3:
		run.create(c)
	case dice < 60:
		run.patch(c)
	case dice < 68:
		ids, body := []string{run.anID()}, run.body(true)
		for run.IntN(3) > 0 && len(ids) < 5 {
			ids = append(ids, run.anID())
		}
		run.request(c, "POST", "/issues/batch", object{"ids": ids, "patch": body}, func() verdict { return run.m.batch(c, ids, body) })
	case dice < 73:
		id := run.anID()
		run.request(c, "DELETE", "/issues/"+id, nil, func() verdict { return run.m.remove(c, id) })
		if run.m.find(id) == nil {
			run.gone = append(run.gone, id)
		}
	case dice < 79:
		id, body := run.anID(), object{"assigneeId": run.actor()}
		run.request(c, "POST", "/issues/"+id+"/assign", body, func() verdict { return run.m.patch(c, id, body) })
	case dice < 87:
		id, actor, kind := run.anID(), run.grantee(), pick(run, "user", "user", "agent", "team")
		run.request(c, "PUT", "/issues/"+id+"/permissions", object{"actorId": actor, "actorType": kind}, func() verdict { return run.m.grant(c, id, actor, kind) })
	case dice < 95:
		id, actor := run.anID(), run.grantee()
		if t := run.m.find(id); t != nil && len(t.grants) > 0 && run.IntN(4) > 0 {
			actor = pick(run, slices.Sorted(maps.Keys(t.grants))...)
		}
		run.request(c, "DELETE", "/issues/"+id+"/permissions/"+actor, nil, func() verdict { return run.m.revoke(c, id, actor) })
	default:
		run.changeTeam()
	}
}
