package tracker

import (
	"fmt"

	"switchyard/storage"
)

// recentTitles are the titles of the issues that have a pending row, and of some
// that were merged last: what titlePostings says of those doesn't count. With it a
// creation sees every one before it, at memory's speed, and a title like the last
// ones need hardly be looked for elsewhere. It is owned by the workspace's goroutine,
// and can be made again from the rows at any time.
type recentTitles struct {
	loaded bool
	all    []recentTitle // in the order in which they came
	scan   []scanned     // the part of all that a search goes through
	at     map[storage.Doc]int
	undo   []recentUndo // changes of the running command
	fresh  bool         // loaded by the running command, which may have changed what was read
	merged bool         // some are merged by the open batch
}

// keptTitles is how many titles are kept when they are merged.
const keptTitles = 64

// maxKeptText bounds the descriptions that are kept for the merge, in bytes.
const maxKeptText = 2 << 10

// titleState says how titlePostings stands to a recent title.
type titleState uint8

const (
	titlePending titleState = iota // there is a pending row
	titleMerging                   // the open batch brings titlePostings up to date
	titleMerged                    // it is up to date
)

// recentTitle is an issue as a possible duplicate.
type recentTitle struct {
	doc       storage.Doc
	signature uint64
	terms     []term
	state     titleState
	open      bool // it may be a duplicate
	blank     bool // while pending: the index has nothing of it

	id storage.ID
	// text is what the merge will need, where that is short; else it is read again.
	text       *searchText
	title      string
	identifier *string
	status     IssueStatus
}

// scanned is a recent title's signature, zero for one that is no possible duplicate.
type scanned struct {
	doc       storage.Doc
	signature uint64
	second    uint64 // another signature, of other bits of the terms
}

func (e *recentTitle) scanned() scanned {
	if !e.open {
		return scanned{doc: e.doc}
	}
	return scanned{e.doc, e.signature, secondSignature(e.terms)}
}

type recentUndo struct {
	at  int // its place; the last one when it was added
	old recentTitle
	add bool
}

// recent gives the recent titles of the workspace.
func (tx *Tx) recent() *recentTitles { return &tx.ledger.recent }

func (r *recentTitles) forget() { *r = recentTitles{} }

// load reads the titles of all pending rows, where that wasn't done yet.
func (r *recentTitles) load(tx *Tx) error {
	if r.loaded {
		return nil
	}
	r.at = map[storage.Doc]int{}
	oldest, err := tx.Counter(searchTotals, oldestPending)
	if err != nil {
		return err
	}
	err = tx.eachPending(oldest, func(id storage.ID, value []byte) (bool, error) {
		row, err := issues.Get(tx, issueKey(id))
		if err != nil {
			return false, err
		}
		was, err := parseIndexed(value)
		if err != nil {
			return false, err
		}
		e := recentTitle{doc: storage.DocOf(id), id: id, blank: was.text == textNone && !was.titled}
		if row != nil {
			e.fill(&row.Value)
			e.terms = titleTerms(row.Value.Title)
			e.signature = signature(e.terms)
		}
		r.at[e.doc] = len(r.all)
		r.all, r.scan = append(r.all, e), append(r.scan, e.scanned())
		return true, nil
	})
	if err != nil {
		r.forget()
		return fmt.Errorf("read what the index lacks: %w", err)
	}
	r.loaded, r.fresh = true, true
	return nil
}

func (e *recentTitle) fill(t *Issue) {
	e.open = t.mayRepeat()
	e.id, e.title, e.identifier, e.status = t.id(), t.Title, t.Identifier, t.Status
	if e.text = nil; len(text(t.Description)) <= maxKeptText {
		e.text = &searchText{Title: t.Title, Description: t.Description, Identifier: t.Identifier, Status: t.Status, IsDraft: t.IsDraft}
	}
}

// set puts an entry, and notes how to undo it.
func (r *recentTitles) set(e recentTitle) {
	if i, ok := r.at[e.doc]; ok {
		r.undo = append(r.undo, recentUndo{at: i, old: r.all[i]})
		r.all[i], r.scan[i] = e, e.scanned()
		return
	}
	r.undo = append(r.undo, recentUndo{at: len(r.all), add: true})
	r.at[e.doc] = len(r.all)
	r.all, r.scan = append(r.all, e), append(r.scan, e.scanned())
}

// put notes the title of an issue that is new or has changed, and its terms; blank
// says that the index has nothing of it. The titles must be loaded.
func (r *recentTitles) put(t *Issue, terms []term, blank bool) {
	e := recentTitle{doc: storage.DocOf(t.id()), terms: terms, signature: signature(terms), blank: blank}
	e.fill(t)
	r.set(e)
}

// refresh brings an issue's other fields up to date, if it is among the recent ones.
func (r *recentTitles) refresh(t *Issue) {
	i, ok := r.at[storage.DocOf(t.id())]
	if !ok {
		return
	}
	e := r.all[i]
	e.fill(t)
	r.set(e)
}

// gone notes that an issue was deleted.
func (r *recentTitles) gone(id storage.ID, blank bool) {
	r.set(recentTitle{doc: storage.DocOf(id), id: id, blank: blank})
}

// merge notes that the open batch merges an issue into the index.
func (r *recentTitles) merge(doc storage.Doc) {
	if i, ok := r.at[doc]; ok {
		e := r.all[i]
		e.state = titleMerging
		r.set(e)
		r.merged = true
	}
}

// begin starts a command.
func (r *recentTitles) begin() { r.undo, r.fresh = r.undo[:0], false }

// rollback undoes what the running command changed.
func (r *recentTitles) rollback() {
	if r.fresh {
		r.forget()
		return
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		u := &r.undo[i]
		if u.add {
			delete(r.at, r.all[u.at].doc)
			r.all, r.scan = r.all[:u.at], r.scan[:u.at]
		} else {
			r.all[u.at], r.scan[u.at] = u.old, u.old.scanned()
		}
	}
	r.undo = r.undo[:0]
}

// committed drops the titles that were merged by the batch, but for the newest.
func (r *recentTitles) committed() {
	if !r.merged {
		return
	}
	spare := 0
	for i := range r.all {
		if e := &r.all[i]; e.state != titlePending {
			e.state, e.text = titleMerged, nil
			spare++
		}
	}
	spare -= keptTitles
	kept := r.all[:0]
	for _, e := range r.all {
		if e.state == titleMerged && (spare > 0 || !e.open) {
			spare--
			continue
		}
		kept = append(kept, e)
	}
	clear(r.all[len(kept):])
	r.all, r.scan, r.merged = kept, r.scan[:0], false
	clear(r.at)
	for i := range r.all {
		r.at[r.all[i].doc] = i
		r.scan = append(r.scan, r.all[i].scanned())
	}
}
