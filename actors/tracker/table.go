package tracker

import "switchyard/storage"

// declaredTable has the facts of a table that storage.Table does not have.
type declaredTable struct {
	spec storage.TableSpec
	id   storage.TableID
	name string
	// newestFirst tables are keyed by newestKey, so that the newest record is the first.
	newestFirst bool
}

// bound is how many records of a kind a workspace may have.
type bound struct {
	most uint64
	what string
}

// The tables and the quotas on records. Bounds limit the records that are read at a time,
// and those that a hostile caller can make. The declarations of the package's variables
// fill in both; a declareTable is next to each table.
var (
	tables []declaredTable
	quotas = map[storage.TableID]bound{}
)

// declared is set when the package's variables have their values: then every table, bound
// and type of event is declared.
var declared bool

func init() {
	declared = true
	meter = storage.NewMeter(Schema())
	arriving = Schema().Within(directoryTable, membershipTable, inboundRouteTable, inboundClaimTable)
}

// mustBeDeclared guards the lists of declarations against a variable of the package that
// is made of one: it would miss what is declared later.
func mustBeDeclared() {
	if !declared {
		panic("tracker: a list of declarations is read before it is whole")
	}
}

// tableOption says more of a table than its declaration in storage can.
type tableOption func(*declaredTable)

// declareTable makes a table part of the schema.
func declareTable[T any](table *storage.Table[T], options ...tableOption) *storage.Table[T] {
	d := declaredTable{spec: table, id: table.ID, name: table.Name}
	for _, set := range options {
		set(&d)
	}
	tables = append(tables, d)
	return table
}

// newestFirst marks a table that is keyed by newestKey.
func newestFirst(d *declaredTable) { d.newestFirst = true }

// atMost bounds the records of a table in a workspace.
func atMost(most uint64, what string) tableOption {
	return func(d *declaredTable) { declareBound(d.id, most, what) }
}

// declareBound bounds the rows under an id in a workspace; tx.countRecord counts them.
func declareBound(id storage.TableID, most uint64, what string) bound {
	quotas[id] = bound{most, what}
	return quotas[id]
}
