package tracker

import (
	"errors"
	"fmt"

	"switchyard/storage"
)

// accessRows are the plain rows of restricted issues.
var accessRows = []storage.RowSpec{{ID: restrictedTable, Name: "restricted issue", Check: checkRestrictedRow}}

// checkRestrictedRow checks that the issue of a row in restrictedTable exists and has
// the restricted flag.
func checkRestrictedRow(v *storage.View, fields, value []byte) error {
	if len(fields) != storage.ListedKeyLen || len(value) != 0 {
		return fmt.Errorf("%w: restricted issue of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
	}
	restricted, there, err := isRestricted(v, fields)
	switch {
	case err != nil:
		return err
	case !there:
		return errors.New("there is no such issue")
	case !restricted:
		return errors.New("the issue says that it is not restricted")
	}
	return nil
}

func isRestricted(v *storage.View, issue []byte) (restricted, there bool, err error) {
	there, err = issues.Record(v, issue, func(rec storage.Record) error {
		restricted = rec.Flags()&issueRestricted != 0
		return nil
	})
	return restricted, there, err
}

// checkRestricted checks that a restricted issue has a grant and a row in
// restrictedTable.
func checkRestricted(v *storage.View, pk []byte, rec storage.Record, report func(string, ...any)) error {
	flagged := rec.Flags()&issueRestricted != 0
	if !flagged {
		return nil // checkAccess and checkRestrictedRow check the other direction
	}
	for table, lacks := range map[storage.TableID]string{
		accessTable:     "is restricted, but has no grant",
		restrictedTable: "is restricted, but not among the restricted ones",
	} {
		there, err := v.Has(table, pk)
		if err != nil {
			return err
		}
		if !there {
			report("%s", lacks)
		}
	}
	return nil
}

// checkAccess checks that the issue of every grant and share exists, and that those of
// grants are restricted.
func checkAccess(v *storage.View, report reporter) error {
	err := accessGrants.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		g, err := accessGrants.Decode(rec)
		if err != nil || len(pk) < storage.ListedKeyLen {
			return true, nil // the table's own check reports it
		}
		if g.Value.ActorType.flag() == 0 || g.Value.ActorID == "" {
			report(accessGrants.Name, pk, "is for %q of type %q", g.Value.ActorID, g.Value.ActorType)
		}
		restricted, there, err := isRestricted(v, pk[:storage.ListedKeyLen])
		switch {
		case err != nil:
			return false, err
		case !there:
			report(accessGrants.Name, pk, "its issue is not there")
		case !restricted:
			report(accessGrants.Name, pk, "its issue is not restricted")
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return shares.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		if there, err := v.Has(issueTable, pk); err != nil {
			return false, err
		} else if !there {
			report(shares.Name, pk, "its issue is not there")
		}
		s, err := shares.Decode(rec)
		if err == nil && len(s.Value.Token) != shareTokenLen {
			report(shares.Name, pk, "its token is of %d characters", len(s.Value.Token))
		}
		return true, nil
	})
}
