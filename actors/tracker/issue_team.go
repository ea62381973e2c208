package tracker

import (
	"strings"

	"switchyard/storage"
)

// maxKnownTeams limits the teams that a write buffer caches.
const maxKnownTeams = 256

// knownTeams caches committed teams of recent issues, so that a creation costs no
// look-up of its team. It is owned by the workspace's goroutine, and dropped whenever a
// batch that changes teams commits. Cached rows must not be changed.
type knownTeams struct {
	byID  map[storage.ID]*storage.Row[Team]
	byKey map[string]*storage.Row[Team]
	first *storage.Row[Team] // the default team
}

func (k *knownTeams) forget() { *k = knownTeams{} }

// known returns the cache, or nil if the open batch may have changed a team.
func (tx *Tx) known() *knownTeams {
	if tx.buffer.Dirty()&DirtyAccess != 0 {
		return nil
	}
	k := &tx.buffer.teams
	if k.byID == nil || len(k.byID)+len(k.byKey) > maxKnownTeams {
		*k = knownTeams{byID: map[storage.ID]*storage.Row[Team]{}, byKey: map[string]*storage.Row[Team]{}, first: k.first}
	}
	return k
}

// defaultTeam returns the workspace's default team, or nil if there is none or the
// caller may not see it.
func (tx *Tx) defaultTeam() (*storage.Row[Team], error) {
	k := tx.known()
	if k != nil && k.first != nil {
		return tx.seenTeam(k.first), nil
	}
	ws, err := tx.workspace()
	if err != nil || ws.Value.DefaultTeamID == nil {
		return nil, err
	}
	team, err := tx.teamByID(*ws.Value.DefaultTeamID)
	if k != nil && team != nil {
		k.first = team
	}
	return team, err
}

// teamWithID is teamByID with the cache.
func (tx *Tx) teamWithID(id TeamID) (*storage.Row[Team], error) {
	k := tx.known()
	if k != nil {
		if parsed, ok := storage.ParseID(id); ok && k.byID[parsed] != nil {
			return tx.seenTeam(k.byID[parsed]), nil
		}
	}
	team, err := tx.teamByID(id)
	if k != nil && team != nil {
		k.byID[team.Team] = team
	}
	return team, err
}

// teamWithKey is teamByKey with the cache.
func (tx *Tx) teamWithKey(key string) (*storage.Row[Team], error) {
	k := tx.known()
	if k != nil {
		if team := k.byKey[strings.ToUpper(key)]; team != nil {
			return tx.seenTeam(team), nil
		}
	}
	team, err := tx.teamByKey(key)
	if k != nil && team != nil {
		k.byKey[team.Value.Key] = team
	}
	return team, err
}

// teamOf returns an issue's team, whether or not the caller may see it, or nil if it
// does not exist.
func (tx *Tx) teamOf(id storage.ID) (*storage.Row[Team], error) {
	k := tx.known()
	if k != nil && k.byID[id] != nil {
		return k.byID[id], nil
	}
	team, err := tx.readTeam(storage.Key(nil).DescID(id))
	if k != nil && team != nil {
		k.byID[id] = team
	}
	return team, err
}

func (tx *Tx) seenTeam(team *storage.Row[Team]) *storage.Row[Team] {
	if !tx.Caller.CanViewTeam(team.Team) {
		return nil
	}
	return team
}

// teamForIssue returns the team that a creation names, or the workspace's default one.
// It returns nil and adds a fault if there is none.
func (tx *Tx) teamForIssue(in *IssueFields, faults *Faults) (*storage.Row[Team], error) {
	if in.TeamID.Set || in.TeamKey.Set {
		return tx.namedTeam(in, "", faults)
	}
	team, err := tx.defaultTeam()
	if err == nil && team == nil {
		faults.Add("teamId", "Is required, since the workspace has no default team.")
		faults.Hint("Send teamId or teamKey, or set the workspace's defaultTeamId.")
	}
	return team, err
}

// namedTeam returns the team that teamId, teamKey or both name. It returns nil and adds
// a fault if there is none or they disagree. path is the path of the fields.
func (tx *Tx) namedTeam(in *IssueFields, path string, faults *Faults) (team *storage.Row[Team], err error) {
	const unknown = "There is no such team."
	if in.TeamID.Set {
		if team, err = tx.teamWithID(in.TeamID.Value); err != nil {
			return nil, err
		}
		if team == nil {
			faults.Add(path+"teamId", unknown)
		}
	}
	if !in.TeamKey.Set {
		return team, nil
	}
	keyed, err := tx.teamWithKey(in.TeamKey.Value)
	switch {
	case err != nil:
		return nil, err
	case keyed == nil:
		faults.Add(path+"teamKey", unknown)
		return nil, nil
	case team != nil && team.Team != keyed.Team:
		faults.Add(path+"teamKey", "Must name the same team as teamId.")
		return nil, nil
	case in.TeamID.Set:
		return team, nil
	}
	return keyed, nil
}
