package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cluster/membership"
	"switchyard/storage"
)

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// parseCluster reads a cluster, one line each:
//
//	three                          it has had three members
//	node NAME [zone=Z] [dead=AGE] [suspect] [silent] [draining] [leaving] [stuck] [full] [removed]
//	shard ID MEMBER...             a* leader, b voter, b! voter behind, ~c learns,
//	                               ^c has caught up, ?c is not hosted, @d orphan,
//	                               %c a voter not hosted, #c failed, -c has no room,
//	                               >c is on a disk that hangs, <c on one that has hung a moment
//	                               ago, =c should not lead;
//	                               changing: the members are not committed;
//	                               small: it has few entries
//	lingering                      orphans were seen long enough
func parseCluster(t *testing.T, text string) State {
	t.Helper()
	state := State{Shards: -1, ReplaceAfter: 5 * time.Minute, Reports: map[string][]GroupReport{}, Droppable: map[Replica]bool{}}
	lingering := false
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "three":
			state.EverThree = true
		case words[0] == "lingering":
			lingering = true
		case words[0] == "node":
			m := Member{Name: words[1], State: membership.NodeAlive}
			silent := false
			for _, word := range words[2:] {
				key, value, _ := strings.Cut(word, "=")
				switch key {
				case "zone":
					m.Zone = value
				case "dead":
					age, err := time.ParseDuration(value)
					if err != nil {
						t.Fatal(err)
					}
					m.State, m.DeadSince, silent = membership.NodeDead, testNow.Add(-age), true
				case "suspect":
					m.State, silent = membership.NodeSuspect, true
				case "silent":
					silent = true
				case "draining":
					m.Draining = true
				case "leaving":
					m.Leaving = true
				case "stuck":
					m.Stuck = true
				case "full":
					m.Full = true
				case "removed":
					m.Removed = true
				default:
					t.Fatalf("what is %q?", word)
				}
			}
			state.Members = append(state.Members, m)
			if !silent {
				state.Reports[m.Name] = nil
			}
		case words[0] == "shard":
			state.Shards++
			placeShard(state, storage.Shard(state.Shards), words[2:])
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	if lingering {
		state.Droppable, state.Lost = Orphans(state), Lost(state)
	}
	return state
}

func placeShard(state State, shard storage.Shard, words []string) {
	lead := GroupReport{Shard: shard, Leads: true, Term: 5, Epoch: 5, Last: 100}
	hosts, failed, noRoom, stuck, full, hung := []string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, word := range words {
		if word == "changing" {
			lead.Changing = true
			continue
		}
		if word == "small" {
			lead.Last = smallLast
			continue
		}
		name := strings.Trim(word, "*!~^?@%#-><=")
		if !strings.ContainsAny(word, "?%") {
			hosts = append(hosts, name)
		}
		failed[name], noRoom[name], stuck[name] = strings.Contains(word, "#"), strings.Contains(word, "-"), strings.Contains(word, ">")
		full[name], hung[name] = strings.Contains(word, "="), strings.Contains(word, "<")
		switch {
		case strings.Contains(word, "@"):
		case strings.ContainsAny(word, "~^?"):
			lead.NonVoters = append(lead.NonVoters, name)
		default:
			lead.Voters = append(lead.Voters, name)
		}
		if strings.HasSuffix(word, "*") {
			lead.Leader = name
		} else {
			lead.Peers = append(lead.Peers, PeerReport{Node: name, CaughtUp: !strings.ContainsAny(word, "!~?@")})
		}
	}
	for _, name := range hosts {
		if _, answers := state.Reports[name]; !answers {
			continue
		}
		own := GroupReport{Shard: shard, Term: 5}
		if name == lead.Leader {
			own = lead
		}
		if failed[name] {
			own.Failed = "bad"
		}
		own.NoRoom, own.Stuck, own.Full, own.Hung = noRoom[name], stuck[name], full[name], hung[name]
		state.Reports[name] = append(state.Reports[name], own)
	}
}

func checkPlans(t *testing.T, cases []planCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			state := parseCluster(t, test.cluster)
			var got, want []string
			for _, s := range Plan(state, testNow) {
				got = append(got, s.String())
			}
			for line := range strings.Lines(test.want) {
				if line = strings.TrimSpace(line); line != "" {
					want = append(want, line)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("plan:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
			}
		})
	}
}
