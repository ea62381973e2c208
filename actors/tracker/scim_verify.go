package tracker

import (
	"fmt"

	"switchyard/storage"
)

// checkOAuth checks that every client has a secret and every secret a client, that both
// have the same permissions, and that access tokens will be swept.
func checkOAuth(v *storage.View, report reporter) error {
	for _, pair := range [][2]storage.TableID{{oauthClientTable, oauthSecretTable}, {oauthSecretTable, oauthClientTable}} {
		err := v.Rows(pair[0], nil, nil, func(pk, _ []byte) (bool, error) {
			there, err := v.Has(pair[1], pk)
			if err == nil && !there {
				report(oauthClients.Name, pk, "there is a client without a secret, or a secret without a client")
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	err := oauthSecrets.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		s, err := oauthSecrets.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		c, err := oauthClients.Get(v, pk)
		if err != nil || c == nil {
			return true, nil
		}
		if p, _, _ := ParsePermissions(c.Value.Permissions); p != s.Value.Permissions {
			report(oauthClients.Name, pk, "its tokens have other permissions than it says")
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("check OAuth clients: %w", err)
	}
	return checkTimer(v, accessTokenTable, timerSweepAccess, report)
}

// checkSCIM checks that no two users have the same userName and no two groups the same
// displayName, and that the team of every group exists.
func checkSCIM(v *storage.View, report reporter) error {
	names := map[string]bool{}
	err := scimUsers.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		if u, err := scimUsers.Decode(rec); err == nil {
			name := foldName(u.Value.UserName)
			if name == "" || names[name] {
				report(scimUsers.Name, pk, "its userName is another's too, or empty")
			}
			names[name] = true
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("check provisioned users: %w", err)
	}
	clear(names)
	err = scimGroups.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		g, err := scimGroups.Decode(rec)
		if err != nil {
			return true, nil
		}
		name := foldName(g.Value.DisplayName)
		if names[name] {
			report(scimGroups.Name, pk, "its displayName is another's too")
		}
		names[name] = true
		team, _ := storage.ParseID(g.Value.ID)
		there, err := v.Has(teamTable, storage.Key(nil).DescID(team))
		if err == nil && !there {
			report(scimGroups.Name, pk, "there is no such team")
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("check provisioned groups: %w", err)
	}
	return nil
}
