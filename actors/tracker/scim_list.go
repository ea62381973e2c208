package tracker

import (
	"encoding/json"
	"fmt"

	"switchyard/storage"
)

const (
	// maxSCIMPage is the most resources that an answer lists, and scimPageSize the
	// default.
	maxSCIMPage  = 200
	scimPageSize = 100
)

// SCIMListIn asks for a page of a list (RFC 7644, section 3.4.2).
type SCIMListIn struct {
	SCIMBase
	SCIMSelection
	Filter     string   `query:"filter" rules:"max=2000"`
	StartIndex int      `query:"startIndex" default:"1"`
	Count      Opt[int] `query:"count"`
}

// scimPage is the requested page of a list. It counts resources beyond its end, too.
type scimPage struct {
	in    *SCIMListIn
	start int // position of the first resource shown, counted from 1
	most  int
	total int
	bytes int
	shown []json.RawMessage
}

func newSCIMPage(in *SCIMListIn) *scimPage {
	return &scimPage{in: in, start: max(1, in.StartIndex), most: min(max(0, in.Count.Or(scimPageSize)), maxSCIMPage), shown: []json.RawMessage{}}
}

// next counts a resource and reports whether it belongs to the page.
func (p *scimPage) next() bool {
	p.total++
	return p.total >= p.start && len(p.shown) < p.most && p.bytes <= maxPageBytes
}

// full reports whether the page is complete.
func (p *scimPage) full() bool { return len(p.shown) >= p.most || p.bytes > maxPageBytes }

// add adds a resource to the page.
func (p *scimPage) add(resource any) error {
	body, err := p.in.encode(resource)
	p.shown = append(p.shown, body)
	p.bytes += len(body)
	return err
}

// scimListed is the answer, for all types of resources.
type scimListed struct {
	Schemas      []string          `json:"schemas"`
	TotalResults int               `json:"totalResults"`
	StartIndex   int               `json:"startIndex"`
	ItemsPerPage int               `json:"itemsPerPage"`
	Resources    []json.RawMessage `json:"Resources"`
}

func (p *scimPage) reply() (Reply, error) {
	return jsonReply(Done, scimListed{
		Schemas: []string{scimListURN}, TotalResults: p.total, StartIndex: p.start, ItemsPerPage: len(p.shown), Resources: p.shown,
	})
}

// scimRowsBy returns the provisioned users or groups with an entry in their index, in the
// order of their ids. noun names one of them.
func scimRowsBy[T any](v *View, table *storage.Table[T], index storage.TableID, noun, kind, value string) ([]*storage.Row[T], error) {
	var rows []*storage.Row[T]
	prefix := storage.Key(nil).Str(kind).Str(value)
	err := v.Rows(index, prefix, nil, func(fields, _ []byte) (bool, error) {
		row, err := table.Get(v, fields[len(prefix):])
		if err == nil && row == nil {
			err = fmt.Errorf("%w: an index entry names a provisioned %s that is not there", storage.ErrFormat, noun)
		}
		rows = append(rows, row)
		return true, err
	})
	if err != nil {
		return nil, fmt.Errorf("look up provisioned %ss: %w", noun, err)
	}
	return rows, nil
}

// narrowSCIM returns the records that the first of the terms with an index finds. narrowed
// is false if no term has one. name is the attribute by which scimByName finds records.
func narrowSCIM[T any](terms []scimTerm, name string, byID func(id string) (*storage.Row[T], error),
	by func(kind, value string) ([]*storage.Row[T], error)) (rows []*storage.Row[T], narrowed bool, err error) {
	for i := range terms {
		switch t := &terms[i]; t.attribute {
		case "id":
			row, err := byID(t.value)
			if err != nil || row == nil {
				return nil, true, err
			}
			return []*storage.Row[T]{row}, true, nil
		case name:
			rows, err = by(scimByName, foldName(t.value))
			return rows, true, err
		case "externalid":
			rows, err = by(scimByExternal, t.value)
			return rows, true, err
		}
	}
	return nil, false, nil
}

// listSCIM answers with the records of a table that satisfy the terms, in the order of
// their keys. Without terms the counter of the table's records has the total.
func listSCIM[T any](v *View, p *scimPage, table *storage.Table[T], terms []scimTerm, rows []*storage.Row[T], narrowed bool,
	holds func(*T, *scimTerm) (bool, error), show func(*T) error) (Reply, error) {
	consider := func(row *storage.Row[T]) error {
		for i := range terms {
			if ok, err := holds(&row.Value, &terms[i]); err != nil || !ok {
				return err
			}
		}
		if !p.next() {
			return nil
		}
		return show(&row.Value)
	}
	if narrowed {
		for _, row := range rows {
			if err := consider(row); err != nil {
				return Reply{}, err
			}
		}
		return p.reply()
	}
	err := table.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		if len(terms) == 0 && p.total+1 < p.start {
			p.total++
			return true, nil
		}
		row, err := table.Decode(rec)
		if err != nil {
			return false, err
		}
		if err := consider(row); err != nil {
			return false, err
		}
		return len(terms) > 0 || !p.full(), nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list %ss: %w", table.Name, err)
	}
	if len(terms) == 0 {
		subject := recordCountSubject(table.ID)
		n, err := v.Number(recordCountTable, subject[:])
		if err != nil {
			return Reply{}, fmt.Errorf("read a record count: %w", err)
		}
		p.total = int(n)
	}
	return p.reply()
}
