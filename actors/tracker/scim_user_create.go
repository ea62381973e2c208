package tracker

import (
	"encoding/json"
	"fmt"
)

// SCIMNameIn is a name in a request; other parts are not stored.
type SCIMNameIn struct {
	Formatted  Opt[string] `json:"formatted" rules:"nullable,max=200"`
	FamilyName Opt[string] `json:"familyName" rules:"nullable,max=200"`
	GivenName  Opt[string] `json:"givenName" rules:"nullable,max=200"`
}

// SCIMEmailIn is an address in a request.
type SCIMEmailIn struct {
	Value   Opt[string] `json:"value" rules:"nullable,max=254"`
	Type    Opt[string] `json:"type" rules:"nullable,max=254"`
	Primary Opt[bool]   `json:"primary" rules:"nullable"`
}

// SCIMUserIn is a complete user.
type SCIMUserIn struct {
	UserName    string             `json:"userName" rules:"required,min=1,max=255"`
	ExternalID  Opt[string]        `json:"externalId" rules:"nullable,max=255"`
	DisplayName Opt[string]        `json:"displayName" rules:"nullable,max=200"`
	Name        Opt[SCIMNameIn]    `json:"name" rules:"nullable"`
	Emails      Opt[[]SCIMEmailIn] `json:"emails" rules:"nullable,max=20"`
	// Active is a boolean, or a string with true or false.
	Active json.RawMessage `json:"active"`
}

// Validate checks what the tags can't express.
func (in *SCIMUserIn) Validate(faults *Faults) {
	if _, err := in.active(); err != nil {
		faults.Add("active", "Must be true or false.")
	}
}

// active returns the value of Active, if there is one.
func (in *SCIMUserIn) active() (Opt[bool], error) {
	var value any
	if TooMany(in.Active, 1) {
		return Opt[bool]{}, scimNotTruth()
	}
	if len(in.Active) == 0 || json.Unmarshal(in.Active, &value) != nil || value == nil {
		return Opt[bool]{}, nil
	}
	active, err := scimTruth(value)
	return Some(active), err
}

// scimText returns the text of a field, or nil if it is absent, null or empty.
func scimText(o Opt[string]) *string {
	if text := o.Or(""); text != "" {
		return &text
	}
	return nil
}

func (in *SCIMUserIn) attributes() SCIMUserAttributes {
	u := SCIMUserAttributes{UserName: in.UserName, ExternalID: scimText(in.ExternalID), DisplayName: scimText(in.DisplayName)}
	if n := in.Name.Ptr(); n != nil {
		name := SCIMName{Formatted: n.Formatted.Or(""), FamilyName: n.FamilyName.Or(""), GivenName: n.GivenName.Or("")}
		if name != (SCIMName{}) {
			u.Name = &name
		}
	}
	for _, e := range in.Emails.Or(nil) {
		if e.Value.Or("") == "" {
			continue
		}
		u.Emails = append(u.Emails, SCIMEmail{Value: e.Value.Value, Type: e.Type.Or(""), Primary: e.Primary.Or(false)})
		if e.Primary.Or(false) {
			onlyPrimary(u.Emails, len(u.Emails)-1)
		}
	}
	return u
}

// CreateSCIMUserIn is a new user.
type CreateSCIMUserIn struct {
	SCIMBase
	SCIMSelection
	SCIMUserIn
}

// scimUserStep is the input of the steps that write a user in the workspace.
type scimUserStep struct {
	SCIMBase
	SCIMSelection
	ID      UserID             `json:"id"`
	IfMatch string             `json:"ifMatch"`
	User    SCIMUserAttributes `json:"user"`
	Active  Opt[bool]          `json:"active"`
}

// CreateSCIMUser provisions a user, who becomes a member unless active is false.
var CreateSCIMUser = NewWorkflow[CreateSCIMUserIn, SCIMUser]("CreateScimUser", "Provision a user", Needs{Level: Read}, func(f Flow, in *CreateSCIMUserIn) (Reply, error) {
	active, err := in.active()
	if err != nil {
		return Reply{}, err
	}
	return memberFlow(f, createSCIMUserOp, &scimUserStep{SCIMBase: in.SCIMBase, SCIMSelection: in.SCIMSelection, User: in.attributes(), Active: active})
}, SCIMScope(SCIMUsersWrite), Answers(Created), Audits(auditMember))

var createSCIMUserOp = NewCommand[scimUserStep, SCIMUser]("CreateScimUserHere", "Provision a user", Needs{Level: Read}, createSCIMUser, SCIMScope(SCIMUsersWrite), Audits(auditMember))

func createSCIMUser(tx *Tx, in *scimUserStep) (Reply, error) {
	if err := tx.freeUserName(in.User.UserName, ""); err != nil {
		return Reply{}, err
	}
	if err := tx.countRecord(scimUserTable, 1); err != nil {
		return Reply{}, err
	}
	u := scimUser{SCIMUserAttributes: in.User, CreatedAt: At(tx.order), UpdatedAt: At(tx.order)}
	m, err := tx.memberToAdopt(&in.User)
	if err != nil {
		return Reply{}, err
	}
	if m != nil {
		u.ID = m.Value.UserID
	} else {
		id, err := tx.NewID()
		if err != nil {
			return Reply{}, fmt.Errorf("make a user's id: %w", err)
		}
		u.ID = UserID(id.String())
	}
	more, err := tx.settleMember(&u, in.Active.Or(true), m == nil)
	if err != nil {
		return Reply{}, err
	}
	if more {
		return Reply{More: true}, tx.countRecord(scimUserTable, -1) // the last batch counts the user
	}
	if _, err := scimUsers.Insert(tx, &u); err != nil {
		return Reply{}, fmt.Errorf("add a provisioned user: %w", err)
	}
	shown, err := tx.scimUserShown(&u, &in.SCIMBase)
	if err != nil {
		return Reply{}, err
	}
	return replySCIMUser(Created, shown, &in.SCIMSelection)
}
