package tracker

import (
	"errors"

	"switchyard/storage"
)

// claimer returns the caller that decides which issues and sessions a session may wait for: the
// actor that has claimed it, with its rights now. It returns nil if that actor has no access any
// more. For a session that nobody has claimed the caller decides.
func (tx *Tx) claimer(s *sessionRecord) (*Caller, error) {
	caller, lease := tx.Caller, s.Inner.Lease
	switch {
	case caller.Lane != nil:
		return caller.Maker, nil
	case lease == nil:
		return caller, nil
	}
	p, err := tx.claimedBy(s)
	if err == nil && p.Expired(tx.now) {
		err = Unauthorized()
	}
	if err == nil && p.Type == caller.Type && p.ID == caller.ID && p.Token == caller.Token {
		return caller, nil
	}
	var of Caller
	if err == nil {
		of, err = ResolveCaller(tx.Reader(), p)
	}
	if hasNoAccess(err) {
		return nil, nil
	}
	return &of, err
}

// claimedBy returns the principal that claimed a session, by the credential of the claim. A
// credential that another workspace stores is not looked at, and that of an imported claim is not
// known: the role of the actor decides then.
func (tx *Tx) claimedBy(s *sessionRecord) (Principal, error) {
	lease := s.Inner.Lease
	if lease.HolderType == ActorSystem {
		return OperatorPrincipal(), nil
	}
	p := Principal{Type: lease.HolderType, ID: lease.HolderID, Home: tx.Workspace(), Permissions: permissionWords["admin"]}
	if p.Type == ActorAgent {
		p.Permissions = permissionWords["write"] // a role above member comes from the credential
	}
	n := len(s.Inner.Lanes)
	if n == 0 {
		return p, nil
	}
	maker := &s.Inner.Lanes[n-1].Maker // of the claim: it retired the lanes before it
	p.Token = maker.Token
	if maker.KeptIn(tx.Workspace()) != tx.Workspace() {
		return p, nil
	}
	return AuthenticateMaker(tx.Reader(), maker)
}

// hasNoAccess reports whether an error says that a credential, or the membership of its actor,
// has ended.
func hasNoAccess(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && (refusal.Code == CodeUnauthorized || refusal.Code == CodeNotFound)
}

// seenWaking returns the conditions that woke a session without those about sessions and issues
// that the caller may not see. A deleted issue is seen as its events are (Decision 44).
func (v *View) seenWaking(woken []WokenBy) ([]WokenBy, error) {
	seen := []WokenBy{}
	for _, w := range woken {
		shown, err := v.seesCondition(&w.Condition)
		if err != nil {
			return nil, err
		}
		if shown {
			seen = append(seen, w)
		}
	}
	return seen, nil
}

// seesCondition reports whether the caller may see what a condition is about.
func (v *View) seesCondition(c *WaitCondition) (bool, error) {
	switch {
	case c.Session != "":
		row, err := v.session(SessionID(c.Session))
		return row != nil, err
	case c.Issue != "":
		id, _ := storage.ParseID(c.Issue)
		r := v.eventReader()
		place, err := r.issueStateOf(id)
		if err != nil {
			return false, err
		}
		return r.showsLink(place)
	}
	return true, nil
}
