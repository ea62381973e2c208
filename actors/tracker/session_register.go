package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// RegisterSessionIn is a session that already runs elsewhere.
type RegisterSessionIn struct {
	IssueID           string        `json:"issueId" rules:"required,min=1,max=255"`
	Provider          string        `json:"provider" rules:"required,min=1,max=200"`
	ProviderSessionID Opt[string]   `json:"providerSessionId" rules:"min=1,max=255"`
	Status            SessionStatus `json:"status"`
	URL               Opt[string]   `json:"url" rules:"max=2048"`
	Branch            Opt[string]   `json:"branch" rules:"max=255"`
	PRURL             Opt[string]   `json:"prUrl" rules:"max=2048"`
}

// RegisteredSession is a session with what its agent needs to work on it. An ended
// session has no lane.
type RegisteredSession struct {
	Session   ShownSession `json:"session"`
	LaneToken *string      `json:"laneToken"`
	LogURL    *string      `json:"logUrl"`
	ReportURL *string      `json:"reportUrl"`
	MCPURL    *string      `json:"mcpUrl"`
}

// RegisterSession adds a session that the service did not start. A session with the
// same providerSessionId is returned again; the actor that registered it, and admins,
// get another lane token (Decision 31).
var RegisterSession = NewCommand[RegisterSessionIn, RegisteredSession]("RegisterSession", "Register a session that runs elsewhere", Needs{Write, "sessions"}, registerSession, StrictBody, WithSecret, AndNeeds(Needs{Read, "issues"}), Answers(Done, Created))

func registerSession(tx *Tx, in *RegisterSessionIn) (Reply, error) {
	if in.ProviderSessionID.Set {
		there, err := tx.registeredSession(in.ProviderSessionID.Value)
		if err != nil {
			return Reply{}, err
		}
		if there != nil {
			return tx.registerAgain(there)
		}
	}
	issue, err := tx.writableIssue(in.IssueID)
	if err != nil {
		return Reply{}, err
	}
	s, err := tx.blankSession(&issue.Value)
	if err != nil {
		return Reply{}, err
	}
	s.AgentID = unassigned
	if tx.Caller.Type == ActorAgent {
		s.AgentID = tx.Caller.ID
	}
	s.Provider, s.ProviderSessionID, s.Inner.External = in.Provider, in.ProviderSessionID.Ptr(), true
	s.URL, s.Branch, s.PRURL = in.URL.Ptr(), in.Branch.Ptr(), in.PRURL.Ptr()
	if in.Status != "" {
		s.Status = in.Status
	}
	agent, err := tx.agent(s.AgentID)
	if err != nil {
		return Reply{}, err
	}
	if agent != nil {
		s.ConcurrencyKeys = concurrencyKeys(nil, &agent.Value, &issue.Value)
	}
	if s.Status == SessionWaiting {
		s.Inner.StartedAt = s.CreatedAt // an agent works on it
	}
	if s.engaged() {
		if err := tx.takesPlaces(s); err != nil {
			return Reply{}, err
		}
		s.LastProgressAt = &s.CreatedAt // the time from which a silent session becomes stalled
	}
	var access laneAccess
	if !s.Status.Ended() {
		text, lane, err := tx.newLane(s.id(), false)
		if err != nil {
			return Reply{}, err
		}
		s.Inner.Lanes = []laneToken{lane}
		access = tx.laneAccess(s.ID, text)
	}
	body, err := tx.insertSession(s, issue)
	if err != nil {
		return Reply{}, err
	}
	return registered(Created, append(appendDerived(body, s), '}'), access)
}

// maxSameProvider limits the sessions with one providerSessionId that are looked at.
const maxSameProvider = 100

// registeredSession returns the session that the caller may mean by a
// providerSessionId: the newest that the caller registered, or the newest that it sees,
// or nil. Sessions of issues that the caller doesn't see are ignored, so that their ids
// can't be guessed (Decision 26).
func (tx *Tx) registeredSession(id string) (found *storage.Row[sessionRecord], err error) {
	prefix := storage.Key(nil).Str(id)
	looked, own := 0, false
	err = tx.Rows(sessionByProvider, prefix, nil, func(fields, _ []byte) (bool, error) {
		if looked++; looked > maxSameProvider {
			return false, nil
		}
		_, err := sessions.Record(tx, fields[len(prefix):], func(rec storage.Record) error {
			seen, err := tx.canViewSession(rec)
			if err != nil || !seen {
				return err
			}
			row, err := sessions.Decode(rec)
			if err != nil {
				return err
			}
			if own = tx.registeredBy(&row.Value); own || found == nil {
				found = row
			}
			return nil
		})
		return !own, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for a session by its providerSessionId: %w", err)
	}
	return found, nil
}

// registeredBy reports whether the caller registered the session.
func (tx *Tx) registeredBy(s *sessionRecord) bool {
	return s.ActorID == tx.Caller.ID && (s.ActorType == ActorAgent) == (tx.Caller.Type == ActorAgent)
}

// registerAgain returns a session that is already registered.
func (tx *Tx) registerAgain(row *storage.Row[sessionRecord]) (Reply, error) {
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	var access laneAccess
	// A session that was retried is for claims: a lane beside the claimer's would be that of a
	// second holder.
	if row.Value.Inner.External && !row.Value.Status.Ended() && (tx.registeredBy(&row.Value) || tx.Caller.Level >= Admin) {
		if access, err = c.openLane(false); err != nil {
			return Reply{}, err
		}
		if _, err := c.save(); err != nil {
			return Reply{}, err
		}
	}
	shown, err := tx.shown(row.Value.id())
	if err != nil {
		return Reply{}, err
	}
	return registered(Done, shown, access)
}

func registered(outcome Outcome, session []byte, access laneAccess) (Reply, error) {
	rest, err := json.MarshalWithOption(&access, json.DisableHTMLEscape())
	if err != nil {
		return Reply{}, fmt.Errorf("encode a lane: %w", err)
	}
	body := append(append(make([]byte, 0, len(session)+len(rest)+16), `{"session":`...), session...)
	return Reply{Outcome: outcome, Body: append(append(body, ','), rest[1:]...)}, nil
}

// shown returns an existing session in the form that clients get, with its
// derivedStatus.
func (v *View) shown(id storage.ID) (body []byte, err error) {
	found, err := sessions.Record(v, sessionKey(id), func(rec storage.Record) error {
		body = v.appendShown(nil, rec)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("session %s is not there", id)
	}
	return body, err
}
