package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// RegisterSessionIn tells of a session that runs already, somewhere else.
type RegisterSessionIn struct {
	IssueID           string        `json:"issueId" rules:"required,min=1,max=255"`
	Provider          string        `json:"provider" rules:"required,min=1,max=200"`
	ProviderSessionID Opt[string]   `json:"providerSessionId" rules:"min=1,max=255"`
	Status            SessionStatus `json:"status" enum:"created,running,waiting,completed,failed,canceled"`
	URL               Opt[string]   `json:"url" rules:"max=2048"`
	Branch            Opt[string]   `json:"branch" rules:"max=255"`
	PRURL             Opt[string]   `json:"prUrl" rules:"max=2048"`
}

// RegisteredSession is a session with what its agent needs to work in it. A session
// that has ended has no lane.
type RegisteredSession struct {
	Session   ShownSession `json:"session"`
	LaneToken *string      `json:"laneToken"`
	LogURL    *string      `json:"logUrl"`
	ReportURL *string      `json:"reportUrl"`
	MCPURL    *string      `json:"mcpUrl"`
}

// RegisterSession takes up a session that the service did not start. One that is
// registered already, by its providerSessionId, is given again, with a lane token
// of its own for whoever asks (Decision 31).
var RegisterSession = NewCommand[RegisterSessionIn, RegisteredSession]("RegisterSession", "Register a session that runs elsewhere", Needs{Write, "sessions"}, registerSession, StrictBody, WithSecret)

func registerSession(tx *Tx, in *RegisterSessionIn) (Reply, error) {
	if in.ProviderSessionID.Set {
		pk, err := sessions.Lookup(tx, sessionByProvider, storage.Key(nil).Str(in.ProviderSessionID.Value))
		if err != nil {
			return Reply{}, fmt.Errorf("look up a session: %w", err)
		}
		if pk != nil {
			return tx.registerAgain(pk)
		}
	}
	issue, err := tx.issue(in.IssueID)
	if err != nil {
		return Reply{}, err
	}
	if issue == nil {
		return Reply{}, NotFound("issue")
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
	if s.Status == SessionWaiting {
		s.Inner.StartedAt = s.CreatedAt // somebody is at it
	}
	if s.engaged() {
		s.LastProgressAt = &s.CreatedAt // so that a silent session becomes stalled
	}
	var access laneAccess
	if !s.Status.Ended() {
		text, credential, err := tx.newLane(s.id())
		if err != nil {
			return Reply{}, err
		}
		s.Inner.Lanes = [][]byte{credential.Hash[:]}
		access = tx.laneAccess(s.ID, text)
	}
	body, err := tx.insertSession(s, issue)
	if err != nil {
		return Reply{}, err
	}
	return registered(Created, append(appendDerived(body, s), '}'), access)
}

// registerAgain gives a session that is registered already.
func (tx *Tx) registerAgain(pk []byte) (Reply, error) {
	row, err := sessions.Get(tx, pk)
	if err != nil || row == nil {
		return Reply{}, fmt.Errorf("read a session that is registered: %w", err)
	}
	if row, err = tx.session(row.Value.ID); err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, Conflict("Another session has this providerSessionId.", "A providerSessionId is unique in a workspace.")
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return Reply{}, err
	}
	var access laneAccess
	if !row.Value.Status.Ended() {
		if access, err = c.openLane(); err != nil {
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

// shown gives a session that is there as clients get it, with its derivedStatus.
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
