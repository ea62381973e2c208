package tracker

import (
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

var dealEvents = newRecordEvents("deal", "", onNoIssue)

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

// CreateDealIn asks for a deal.
type CreateDealIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	DealFields
}

// PatchDealIn changes a deal. Absent fields stay as they are.
type PatchDealIn struct {
	ID   string      `path:"id"`
	Name Opt[string] `json:"name" rules:"min=1,max=200"`
	DealFields
}

// DealList is a page of deals.
type DealList struct {
	Deals      []Deal `json:"deals"`
	NextCursor string `json:"nextCursor,omitempty"`
}

// Deals are the operations on deals.
var Deals = declareRecords(records[Deal, CreateDealIn, PatchDealIn, DealList]{
	table: &deals,
	one:   "deal",
	many:  "deals",
	most:  100_000,
	make: func(in *CreateDealIn, made newRecord) (Deal, error) {
		d := Deal{ID: DealID(made.id), OrganizationID: made.workspace, Name: in.Name, Stage: firstStage, CreatedAt: made.at, UpdatedAt: made.at}
		in.apply(&d)
		return d, nil
	},
	id: func(in *PatchDealIn) string { return in.ID },
	change: func(in *PatchDealIn, d *Deal) error {
		d.Name = in.Name.Or(d.Name)
		in.apply(d)
		return nil
	},
	updated: func(d *Deal) *Timestamp { return &d.UpdatedAt },
	paged:   true,
	events:  dealEvents,
	changes: dealChanges,
})
