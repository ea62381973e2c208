package tracker

// CreateDealIn is a new deal.
type CreateDealIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	DealFields
}

// CreateDeal adds a deal.
var CreateDeal = NewCommand[CreateDealIn, Deal]("CreateDeal", "Create a deal", Needs{Level: Write}, createDeal, Answers(Created))

func createDeal(tx *Tx, in *CreateDealIn) (Reply, error) {
	id, err := tx.newRecordID(dealTable)
	if err != nil {
		return Reply{}, err
	}
	now := At(tx.now)
	d := Deal{ID: DealID(id), OrganizationID: WorkspaceID(tx.Workspace().String()), Name: in.Name, Stage: firstStage, CreatedAt: now, UpdatedAt: now}
	in.apply(&d)
	reply, err := addRecord(tx, &deals, &d)
	if err != nil {
		return Reply{}, err
	}
	return reply, tx.Emit(eventDealCreated, toAll, reply.Body, nil)
}
