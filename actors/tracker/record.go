package tracker

import (
	"strings"

	"switchyard/storage"
)

// records declares an entity of plain records: the whole workspace sees them, their
// number is bounded, they are listed newest first, and they are made, read, changed and
// deleted like all such records (see named_record.go). T is the record, C and P are the
// inputs of its creation and its change, and L is its list.
//
// An entity whose operations do much more (teams, support channels, agents, webhook
// subscriptions, OAuth clients) has a file for each operation instead.
type records[T, C, P, L any] struct {
	table *storage.Table[T]
	// one and many name the entity in texts and paths; the names of its operations are
	// made of them.
	one, many string
	// most is how many of them a workspace may have.
	most uint64
	// paged lists have at most 50 records a page unless the caller says otherwise. Other
	// lists come whole.
	paged bool
	// make gives a new record its values; change changes one that is there, and id names it.
	make   func(in *C, made newRecord) (T, error)
	id     func(in *P) string
	change func(in *P, record *T) error
	// updated is where a record has the moment of its last change.
	updated func(record *T) *Timestamp
	// events are the events of changes, which changes lists; nil: there are none.
	events  *recordEvents
	changes func(from, to *T) []Change
}

// newRecord has the fields that every new record has.
type newRecord struct {
	id        string
	workspace WorkspaceID
	at        Timestamp
}

// recordEvents are the types of events about records of an entity.
type recordEvents struct{ created, updated, deleted *eventKind }

// newRecordEvents declares the types of events about an entity.
func newRecordEvents(one, resource string, hangs issueSource) *recordEvents {
	return &recordEvents{
		created: newEventKind(one+".created", resource, hangs),
		updated: newEventKind(one+".updated", resource, hangs),
		deleted: newEventKind(one+".deleted", resource, hangs),
	}
}

// RecordOps are the operations of an entity of plain records.
type RecordOps struct {
	Many string // the name of the list: "labels"

	Create, Get, List, Patch, Delete *Op
}

// recordEntities are the entities that declareRecords was called for.
var recordEntities []RecordOps

// RecordEntities are all entities of plain records.
func RecordEntities() []RecordOps {
	mustBeDeclared()
	return recordEntities
}

// declareRecords declares an entity, with its table, as a variable of the package.
func declareRecords[T, C, P, L any](r records[T, C, P, L]) RecordOps {
	declareTable(r.table, newestFirst, atMost(r.most, r.many))
	name, names := strings.ToUpper(r.one[:1])+r.one[1:], strings.ToUpper(r.many[:1])+r.many[1:]
	list := NewQuery[PageIn, L]("List"+names, "List "+r.many, Needs{Level: Read}, r.list, FromSnapshot)
	if r.paged {
		list = NewQuery[PagedIn, L]("List"+names, "List "+r.many, Needs{Level: Read}, r.listPaged, FromSnapshot)
	}
	ops := RecordOps{
		Many:   r.many,
		Create: NewCommand[C, T]("Create"+name, "Create a "+r.one, Needs{Level: Write}, r.create, Answers(Created)),
		Get:    NewQuery[RecordIn, T](name+"ByID", "Get a "+r.one, Needs{Level: Read}, r.get),
		List:   list,
		Patch:  NewCommand[P, T]("Patch"+name, "Change a "+r.one, Needs{Level: Write}, r.patch),
		Delete: NewCommand[RecordIn, None]("Delete"+name, "Delete a "+r.one, Needs{Level: Write}, r.remove, WithSpaceEffect(FreesSpace)),
	}
	recordEntities = append(recordEntities, ops)
	return ops
}

func (r *records[T, C, P, L]) create(tx *Tx, in *C) (Reply, error) {
	id, err := tx.newRecordID(r.table.ID)
	if err != nil {
		return Reply{}, err
	}
	record, err := r.make(in, newRecord{id: id, workspace: WorkspaceID(tx.Workspace().String()), at: At(tx.now)})
	if err != nil {
		return Reply{}, err
	}
	reply, err := addRecord(tx, r.table, &record)
	if err != nil || r.events == nil {
		return reply, err
	}
	return reply, tx.Emit(r.events.created, toAll, reply.Body, nil)
}

func (r *records[T, C, P, L]) get(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, r.table, in, r.one)
}

func (r *records[T, C, P, L]) list(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, r.many, r.table, nil)
}

func (r *records[T, C, P, L]) listPaged(v *View, in *PagedIn) (Reply, error) {
	return r.list(v, &PageIn{Limit: in.Limit, Cursor: in.Cursor})
}

func (r *records[T, C, P, L]) patch(tx *Tx, in *P) (Reply, error) {
	row, err := recordIn(&tx.View, r.table, r.id(in), r.one)
	if err != nil {
		return Reply{}, err
	}
	record := row.Value
	if err := r.change(in, &record); err != nil {
		return Reply{}, err
	}
	if r.events == nil {
		return changeRecord(tx, r.table, row, &record, r.updated(&record))
	}
	list := r.changes(&row.Value, &record)
	reply, err := changeRecord(tx, r.table, row, &record, r.updated(&record))
	if err != nil || len(list) == 0 {
		return reply, err
	}
	return reply, tx.Emit(r.events.updated, toAll, reply.Body, list)
}

// remove deletes a record. Issues that name it keep its id (Decision 41).
func (r *records[T, C, P, L]) remove(tx *Tx, in *RecordIn) (Reply, error) {
	row, err := recordIn(&tx.View, r.table, in.ID, r.one)
	if err != nil {
		return Reply{}, err
	}
	reply, err := removeRow(tx, r.table, row, r.one)
	if err != nil || r.events == nil {
		return reply, err
	}
	last, err := jsonReply(Done, &row.Value)
	if err != nil {
		return Reply{}, err
	}
	return reply, tx.Emit(r.events.deleted, toAll, last.Body, nil)
}
