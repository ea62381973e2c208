package tracker

import (
	"fmt"

	"switchyard/storage"
)

// bounds limits the number of records of each table in a workspace: it bounds what is
// read at a time, and the rows that a hostile caller can create.
var bounds = map[storage.TableID]struct {
	most uint64
	what string
}{
	teamTable:   {1_000, "teams"},
	memberTable: {10_000, "members"},
	tokenTable:  {10_000, "tokens"},
	// Agents have the same bound as tokens: most tokens of agents come with an agent of
	// their own.
	agentTable: {10_000, "agents"},

	labelTable:   {10_000, "labels"},
	projectTable: {10_000, "projects"},
	cycleTable:   {10_000, "cycles"},
	// A template may be as large as an issue, and few are needed.
	templateTable: {1_000, "templates"},

	channelTable:       {1_000, "support channels"},
	ticketTable:        {1_000_000, "tickets"},
	dealTable:          {100_000, "deals"},
	inboundSecretTable: {1_000, "inbound secrets"},
	receivedTable:      {200_000, "remembered deliveries"},
	// Each attachment has up to maxScreenshot bytes.
	attachmentTable: {100_000, "attachments"},

	webhookTable:        {100, "webhook subscriptions"},
	oauthClientTable:    {1_000, "OAuth clients"},
	accessTokenTable:    {50_000, "OAuth access tokens"},
	scimConnectionTable: {100, "SCIM connections"},
	// Deactivated users are kept, in addition to the members.
	scimUserTable:  {20_000, "provisioned users"},
	scimGroupTable: {1_000, "provisioned groups"},
}

// tallySubject is the subject of a table's counter.
func tallySubject(table storage.TableID) storage.ID { return storage.ID{15: byte(table)} }

// tally adds to the counter of a table's records; it returns CONFLICT at the table's
// limit.
func (tx *Tx) tally(table storage.TableID, by int) error {
	subject := tallySubject(table)
	n, err := tx.Counter(tallyTable, subject)
	if err != nil {
		return err
	}
	if b := bounds[table]; by > 0 && n >= b.most {
		return Conflict(fmt.Sprintf("The workspace has %d %s, the most there can be.", n, b.what), "Delete some of the "+b.what+" first.")
	}
	return tx.SetCounter(tallyTable, subject, n+uint64(by)) // adding a negative number wraps around, as intended
}
