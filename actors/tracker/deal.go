package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// DealID is the id of a deal.
type DealID string

// Deal is a possible sale.
type Deal struct {
	ID             DealID      `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           string      `json:"name"`
	// Stage is the workspace's own name for the state of the deal.
	Stage     string    `json:"stage"`
	Amount    *float64  `json:"amount"`
	Currency  *string   `json:"currency"`
	Contact   *string   `json:"contact"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

// Types of events about deals.
var (
	eventDealCreated = newEventKind("deal.created", "", onNoIssue)
	eventDealUpdated = newEventKind("deal.updated", "", onNoIssue)
	eventDealDeleted = newEventKind("deal.deleted", "", onNoIssue)
)

// firstStage is the default stage of a new deal.
const firstStage = "new"

var deals = storage.Table[Deal]{
	ID:   dealTable,
	Name: "deal",
	Key:  func(k storage.Key, d *Deal) storage.Key { return newestKey(k, d.ID) },
}

// DealFields are the fields that the creation and the change of a deal share, except
// for its name.
type DealFields struct {
	Stage    Opt[string]  `json:"stage" rules:"min=1,max=100"`
	Amount   Opt[float64] `json:"amount" rules:"nullable,min=0,max=9007199254740991"`
	Currency Opt[string]  `json:"currency" rules:"nullable,min=3,max=3" form:"currency"`
	Contact  Opt[string]  `json:"contact" rules:"nullable,min=1,max=500"`
}

func (f *DealFields) apply(d *Deal) {
	d.Stage = f.Stage.Or(d.Stage)
	assign(&d.Amount, &f.Amount)
	assign(&d.Currency, &f.Currency)
	assign(&d.Contact, &f.Contact)
	if d.Currency != nil {
		code := strings.ToUpper(*d.Currency)
		d.Currency = &code
	}
}

func dealChanges(from, to *Deal) []Change {
	var c changes
	note(&c, "name", &from.Name, &to.Name)
	note(&c, "stage", &from.Stage, &to.Stage)
	note(&c, "amount", from.Amount, to.Amount)
	note(&c, "currency", from.Currency, to.Currency)
	note(&c, "contact", from.Contact, to.Contact)
	return c
}

// updateDeal stores a changed deal with its event, and returns its JSON. It writes
// nothing if no field differs.
func (tx *Tx) updateDeal(old *storage.Row[Deal], d *Deal) (Reply, error) {
	list := dealChanges(&old.Value, d)
	if len(list) == 0 {
		return jsonReply(Done, &old.Value)
	}
	d.UpdatedAt = At(tx.now)
	body, err := deals.Update(tx, old, d)
	if err != nil {
		return Reply{}, fmt.Errorf("store a deal: %w", err)
	}
	return Reply{Body: body}, tx.Emit(eventDealUpdated, toAll, body, list)
}
