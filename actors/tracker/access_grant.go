package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// GranteeType is the kind of actor that a grant is for.
type GranteeType string

// The kinds of grantees.
const (
	GranteeUser  GranteeType = "user"
	GranteeAgent GranteeType = "agent"
	GranteeTeam  GranteeType = "team"
)

// EnumValues implements Enumerated.
func (GranteeType) EnumValues() []string {
	return enumTexts([]GranteeType{GranteeUser, GranteeAgent, GranteeTeam})
}

// AccessGrant lets an actor see an issue. An issue with at least one grant is
// restricted: only admins and the actors of its grants see it (Decision 26).
type AccessGrant struct {
	ID             string      `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	IssueID        IssueID     `json:"issueId"`
	ActorID        string      `json:"actorId"`
	ActorType      GranteeType `json:"actorType"`
	CreatedAt      Timestamp   `json:"createdAt"`
}

// Flags of a grant's record: the type of its actor, without decoding it.
const (
	grantsUser storage.Flags = 1 << iota
	grantsAgent
	grantsTeam
)

// maxGrants limits the grants of an issue: all are read to decide whether a caller sees
// it. A grant to a team admits any number of people.
const maxGrants = 100

// accessGrants holds the grants of all issues. The restricted flag in the issue's
// record and the row in restrictedTable say that the issue has grants; a batch changes
// all three together.
var accessGrants = storage.Table[AccessGrant]{
	Changed: audited(auditAccess, func(g *AccessGrant) string { return string(g.IssueID) }),
	ID:      accessTable,
	Name:    "accessGrant",
	Key: func(k storage.Key, g *AccessGrant) storage.Key {
		id, _ := storage.ParseID(g.IssueID)
		return accessKey(k, id, g.ActorID)
	},
	Head:  func(g *AccessGrant) (storage.Flags, storage.ID) { return g.ActorType.flag(), storage.ID{} },
	Dirty: DirtySets,
}

var _ = declareTable(&accessGrants)

func accessKey(k storage.Key, issue storage.ID, actor string) storage.Key {
	return k.DescID(issue).Str(actor)
}

func (t GranteeType) flag() storage.Flags {
	switch t {
	case GranteeUser:
		return grantsUser
	case GranteeAgent:
		return grantsAgent
	case GranteeTeam:
		return grantsTeam
	}
	return 0
}

// granted reports whether one of the issue's grants admits a caller.
func (v *View) granted(c *Caller, issue storage.ID) (in bool, err error) {
	lets := c.grantMatcher()
	err = accessGrants.Scan(v, issueKey(issue), nil, func(pk []byte, rec storage.Record) (bool, error) {
		in = lets(pk, rec)
		return !in, nil
	})
	if err != nil {
		return false, fmt.Errorf("read an issue's grants: %w", err)
	}
	return in, nil
}

// grantMatcher returns a function that reports whether a stored grant admits the caller: a
// grant to the caller's id and type, or to a team that the caller is a member of.
func (c *Caller) grantMatcher() func(pk []byte, rec storage.Record) bool {
	self, kind := storage.Key(nil).Str(c.ID), GranteeType(c.Type).flag()
	return func(pk []byte, rec storage.Record) bool {
		actor, flags := pk[len(storage.ID{}):], rec.Flags()
		if flags&grantsTeam == 0 {
			return flags&kind != 0 && bytes.Equal(actor, self)
		}
		team, ok := storage.ParseID(actor[:len(actor)-1])
		if ok {
			_, ok = c.Teams[team]
		}
		return ok
	}
}

// countGrants counts the grants of an issue.
func (v *View) countGrants(issue storage.ID) (n int, err error) {
	err = v.Rows(accessTable, issueKey(issue), nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
	if err != nil {
		return 0, fmt.Errorf("count an issue's grants: %w", err)
	}
	return n, nil
}

// restrict makes an issue restricted when it gets its first grant, or open again when
// it has lost its last one. The issue itself, its ETag and updatedAt do not change.
func (tx *Tx) restrict(row *storage.Row[Issue], restricted bool) error {
	pk := issueKey(row.Value.id())
	held, mark := row.Flags&issues.Held&^issueRestricted, tx.Writer().DeleteValue
	if restricted {
		held |= issueRestricted
		mark = func(table storage.TableID, fields []byte) error { return tx.Writer().SetValue(table, fields, nil) }
	}
	if err := tx.completeEvent(row); err != nil {
		return err
	}
	if err := issues.SetHeld(tx, row, held); err != nil {
		return fmt.Errorf("restrict an issue: %w", err)
	}
	if err := mark(restrictedTable, pk); err != nil {
		return err
	}
	if err := tx.indexAgain(&row.Value); err != nil {
		return err
	}
	return tx.aggregateRestricted(&row.Value, restricted)
}

// copyGrants makes the issue to restricted, with grants of its own for the actors of
// from's grants.
func (tx *Tx) copyGrants(from, to *storage.Row[Issue]) error {
	var all []AccessGrant
	err := accessGrants.Scan(tx, issueKey(from.Value.id()), nil, func(_ []byte, rec storage.Record) (bool, error) {
		g, err := accessGrants.Decode(rec)
		if err == nil {
			all = append(all, g.Value)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read an issue's grants: %w", err)
	}
	for _, g := range all {
		id, err := tx.NewID()
		if err != nil {
			return fmt.Errorf("make a grant's id: %w", err)
		}
		g.ID, g.IssueID, g.CreatedAt = id.String(), to.Value.ID, At(tx.now)
		if _, err := accessGrants.Insert(tx, &g); err != nil {
			return fmt.Errorf("copy a grant: %w", err)
		}
	}
	return tx.restrict(to, true)
}

// deleteAccess removes the grants and the share of an issue that is about to be removed.
func (tx *Tx) deleteAccess(row *storage.Row[Issue]) error {
	pk := issueKey(row.Value.id())
	if row.Flags&issueRestricted != 0 {
		var all []*storage.Row[AccessGrant]
		err := accessGrants.Scan(tx, pk, nil, func(_ []byte, rec storage.Record) (bool, error) {
			g, err := accessGrants.Decode(rec)
			all = append(all, g)
			return true, err
		})
		if err != nil {
			return fmt.Errorf("read an issue's grants: %w", err)
		}
		for _, g := range all {
			if err := accessGrants.Delete(tx, g); err != nil {
				return fmt.Errorf("remove a grant: %w", err)
			}
		}
		if err := tx.Writer().DeleteValue(restrictedTable, pk); err != nil {
			return err
		}
	}
	share, err := shares.Get(tx, pk)
	if err != nil || share == nil {
		return err
	}
	return shares.Delete(tx, share)
}
