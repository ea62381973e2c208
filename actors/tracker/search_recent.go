package tracker

import (
	"fmt"
	"maps"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// recentTitles are the titles of the issues that the index lacks or holds wrongly, and of
// some that were indexed last. With it a creation sees every one before it, at memory's
// speed, and a title like the last ones need hardly be looked for elsewhere. It is owned
// by the workspace's goroutine, and can be made again from the rows at any time.
type recentTitles struct {
	loaded bool
	all    []recentTitle // in the order in which they came
	scan   []scanned     // the part of all that a search goes through
	at     map[storage.Doc]int
	// waiting is how many issues there are to be indexed; undoWaiting is how many there
	// were before the running command.
	waiting, undoWaiting int
	// text and undoText are the bytes of these issues' texts.
	text, undoText int
	// tails counts what the titles take, bytes of it.
	tails *Tails
	bytes int64
	// manifest is the committed one; next takes its place with the open batch.
	manifest storage.Manifest
	next     *storage.Manifest
	// filters tell which terms the titles of each segment may have.
	filters map[uint32]storage.TermFilter
	shares  termShares
	// blocks are what searches read of the segments' titles; nil until there is a search.
	blocks   *storage.SegmentBlocks
	undo     []recentUndo // changes of the running command
	undoNext *storage.Manifest
	fresh    bool // loaded by the running command, which may have changed what was read
	merged   bool // some are indexed by the open batch
}

const (
	// keptTitles is how many titles are kept when they are indexed.
	keptTitles = 64
	// titlesRoom is the number of titles, and of changes of titles, whose memory is kept for later ones.
	titlesRoom = 4 * keptTitles
)

// titleState says how the index stands to a recent title.
type titleState uint8

const (
	titlePending titleState = iota // the index lacks it, or holds another
	titleMerging                   // the open batch brings the index up to date
	titleMerged                    // it is up to date
)

// recentTitle is an issue as a possible duplicate.
type recentTitle struct {
	doc       storage.Doc
	signature uint64
	terms     []term
	state     titleState
	open      bool   // it may be a duplicate
	text      uint32 // bytes of title and description; of an issue that was loaded, of its JSON
	// change is the value of the issue's row in searchChanged; 0 when there is none.
	change uint64

	id         storage.ID
	title      string
	identifier *string
	status     IssueStatus
}

// scanned is a recent title's signatures, zero for one that is no possible duplicate.
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
func (tx *Tx) recent() *recentTitles { return &tx.buffer.recent }

func (r *recentTitles) forget() {
	r.tails.count(-r.bytes)
	r.keepBlocks(nil)
	*r = recentTitles{tails: r.tails}
}

// recentTitleBytes is about the memory of a title without its text and terms.
const recentTitleBytes = 288

func (e *recentTitle) bytes() int64 {
	return int64(recentTitleBytes + len(e.title) + 8*len(e.terms))
}

// waitingText is the size of the issue's texts if they are to be indexed.
func (e *recentTitle) waitingText() int {
	if e.state != titlePending {
		return 0
	}
	return int(e.text)
}

// count notes how much larger the titles have become.
func (r *recentTitles) count(bytes int64) {
	r.bytes += bytes
	r.tails.count(bytes)
}

// load reads the titles of all issues that the index lacks, where that wasn't done yet.
func (r *recentTitles) load(tx *Tx) (err error) {
	if r.loaded {
		return nil
	}
	r.at = map[storage.Doc]int{}
	if r.manifest, err = tx.manifest(); err != nil {
		return err
	}
	add := func(e recentTitle) {
		r.at[e.doc] = len(r.all)
		r.all, r.scan = append(r.all, e), append(r.scan, e.scanned())
		r.count(e.bytes())
		r.text += e.waitingText()
	}
	title := func(rec storage.Record, change uint64) error {
		var like likeness
		if err := json.Unmarshal(rec.JSON(), &like); err != nil {
			return fmt.Errorf("read an issue: %w", err)
		}
		id, err := storedID(rec)
		if err == nil {
			e := newRecent(id, &like, titleTerms(like.Title), change)
			e.text = uint32(len(rec.JSON()))
			add(e)
		}
		return err
	}
	err = tx.eachChanged(func(id storage.ID, change uint64) (bool, error) {
		there, err := issues.Record(tx, issueKey(id), func(rec storage.Record) error { return title(rec, change) })
		if err == nil && !there {
			add(recentTitle{doc: storage.DocOf(id), id: id, change: change})
		}
		return true, err
	})
	if err == nil {
		err = tx.eachInTail(r.manifest.Through, func(rec storage.Record) (bool, error) {
			id, err := storedID(rec)
			if _, known := r.at[storage.DocOf(id)]; err != nil || known {
				return true, err
			}
			return true, title(rec, 0)
		})
	}
	if err != nil {
		r.forget()
		return fmt.Errorf("read the index's tail: %w", err)
	}
	r.loaded, r.fresh, r.waiting = true, true, len(r.all)
	return nil
}

func newRecent(id storage.ID, like *likeness, terms []term, change uint64) recentTitle {
	e := recentTitle{id: id, doc: storage.DocOf(id), terms: terms, signature: signature(terms), change: change}
	e.fill(like)
	return e
}

func (e *recentTitle) fill(like *likeness) {
	e.open = like.mayRepeat()
	e.title, e.identifier, e.status = like.Title, like.Identifier, like.Status
}

// set puts an entry, and notes how to undo it.
func (r *recentTitles) set(e recentTitle) {
	if i, ok := r.at[e.doc]; ok {
		r.undo = append(r.undo, recentUndo{at: i, old: r.all[i]})
		r.count(e.bytes() - r.all[i].bytes())
		r.text += e.waitingText() - r.all[i].waitingText()
		r.all[i], r.scan[i] = e, e.scanned()
		return
	}
	r.count(e.bytes())
	r.text += e.waitingText()
	r.undo = append(r.undo, recentUndo{at: len(r.all), add: true})
	r.at[e.doc] = len(r.all)
	r.all, r.scan = append(r.all, e), append(r.scan, e.scanned())
}

// put notes the title of an issue that is new or has changed, and its terms. The titles
// must be loaded.
func (r *recentTitles) put(t *Issue, terms []term, change uint64) {
	like := t.likeness()
	e := newRecent(t.id(), &like, terms, change)
	e.text = uint32(t.textBytes())
	r.set(r.wait(e))
}

// wait counts an issue among those that are to be indexed.
func (r *recentTitles) wait(e recentTitle) recentTitle {
	if i, ok := r.at[e.doc]; !ok || r.all[i].state != titlePending {
		r.waiting++
	}
	return e
}

// refresh brings an issue's other fields up to date, if it is among the recent ones.
func (r *recentTitles) refresh(t *Issue) {
	i, ok := r.at[storage.DocOf(t.id())]
	if !ok {
		return
	}
	e, like := r.all[i], t.likeness()
	e.fill(&like)
	r.set(e)
}

// gone notes that an issue was deleted.
func (r *recentTitles) gone(id storage.ID, change uint64) {
	r.set(r.wait(recentTitle{doc: storage.DocOf(id), id: id, change: change}))
}

// change returns the value of an issue's row in searchChanged; 0 if there is none.
func (r *recentTitles) change(doc storage.Doc) uint64 {
	if i, ok := r.at[doc]; ok && r.all[i].state == titlePending {
		return r.all[i].change
	}
	return 0
}

// unchanged notes that the open batch removes an issue's row in searchChanged.
func (r *recentTitles) unchanged(doc storage.Doc) {
	e := r.all[r.at[doc]]
	e.change = 0
	r.set(e)
}

// textBytes is the size of the texts of an issue that are indexed.
func (t *Issue) textBytes() int { return len(t.Title) + len(text(t.Description)) }

// indexed notes that the open batch completes a segment, and counts anew the issues that
// are still to be indexed. It gives how many they are, and whether a long one is among them.
func (r *recentTitles) indexed(next storage.Manifest) (left int, long bool) {
	text := 0
	for i := range r.all {
		e := r.all[i]
		switch {
		case e.state != titlePending:
		case e.doc <= next.Through && e.change == 0:
			e.state = titleMerging
			r.set(e)
			r.merged = true
		default:
			left++
			text += e.waitingText()
			long = long || e.text >= indexLong
		}
	}
	r.next = &next
	r.waiting, r.text = left, text
	return left, long
}

// mergedSegments notes that the open batch replaces segments by one merged from them.
func (r *recentTitles) mergedSegments(next storage.Manifest) { r.next = &next }

// filter gives the filter of a segment's titles, which it reads once.
func (r *recentTitles) filter(from *storage.SegmentReader, segment uint32) (storage.TermFilter, error) {
	if f, known := r.filters[segment]; known {
		return f, nil
	}
	f, err := from.Filter(segment)
	if err != nil {
		return nil, err
	}
	if r.filters == nil {
		r.filters = map[uint32]storage.TermFilter{}
	}
	r.filters[segment] = f
	return f, nil
}

// reader reads the segments, and from memory what was read of their titles before.
func (r *recentTitles) reader(v *storage.View) *storage.SegmentReader {
	if r.blocks == nil {
		r.blocks = storage.NewSegmentBlocks(titleTermsOf, r.tails.reserveTerms, r.tails.reserveColumns)
	}
	return searchIndex.ReaderWith(v, r.blocks)
}

// keepBlocks forgets what was read of segments that are no longer among the given ones.
func (r *recentTitles) keepBlocks(segments []storage.Segment) {
	if r.blocks == nil {
		return
	}
	r.blocks.Keep(func(number uint32) bool {
		return slices.ContainsFunc(segments, func(s storage.Segment) bool { return s.Number == number })
	})
}

// begin starts a command.
func (r *recentTitles) begin() {
	r.forgetUndo()
	r.undoNext, r.undoWaiting, r.undoText, r.fresh = r.next, r.waiting, r.text, false
}

// forgetUndo forgets the changes, and the titles in them.
func (r *recentTitles) forgetUndo() {
	clear(r.undo)
	if r.undo = r.undo[:0]; cap(r.undo) > titlesRoom {
		r.undo = nil
	}
}

// rollback undoes what the running command changed.
func (r *recentTitles) rollback() {
	if r.fresh {
		r.forget()
		return
	}
	for i := len(r.undo) - 1; i >= 0; i-- {
		u := &r.undo[i]
		if u.add {
			r.count(-r.all[u.at].bytes())
			delete(r.at, r.all[u.at].doc)
			r.all[u.at] = recentTitle{}
			r.all, r.scan = r.all[:u.at], r.scan[:u.at]
		} else {
			r.count(u.old.bytes() - r.all[u.at].bytes())
			r.all[u.at], r.scan[u.at] = u.old, u.old.scanned()
		}
	}
	if r.roomy(len(r.all)) {
		r.keep(r.all)
	}
	r.forgetUndo()
	r.next, r.waiting, r.text = r.undoNext, r.undoWaiting, r.undoText
}

// roomy reports whether there is memory for many more titles than so many.
func (r *recentTitles) roomy(titles int) bool { return cap(r.all) > max(titlesRoom, 2*titles) }

// keep drops all titles but these, which are in the memory of all, and gives back what the others took.
func (r *recentTitles) keep(titles []recentTitle) {
	if r.roomy(len(titles)) {
		titles = slices.Clone(titles)
		r.scan, r.at = make([]scanned, 0, len(titles)), make(map[storage.Doc]int, len(titles))
	} else {
		clear(r.all[len(titles):])
		clear(r.at)
	}
	r.all, r.scan = titles, r.scan[:0]
	for i := range r.all {
		r.at[r.all[i].doc] = i
		r.scan = append(r.scan, r.all[i].scanned())
	}
}

// committed drops the titles that were indexed by the batch, but for the newest.
func (r *recentTitles) committed() {
	if r.next != nil {
		r.manifest, r.next = *r.next, nil
		maps.DeleteFunc(r.filters, func(n uint32, _ storage.TermFilter) bool {
			return !slices.ContainsFunc(r.manifest.Segments, func(s storage.Segment) bool { return s.Number == n })
		})
		r.keepBlocks(r.manifest.Segments)
	}
	if !r.merged {
		return
	}
	spare := 0
	for i := range r.all {
		if e := &r.all[i]; e.state != titlePending {
			e.state = titleMerged
			spare++
		}
	}
	spare -= keptTitles
	kept := r.all[:0]
	for _, e := range r.all {
		if e.state == titleMerged && (spare > 0 || !e.open) {
			spare--
			r.count(-e.bytes())
			continue
		}
		kept = append(kept, e)
	}
	r.keep(kept)
	r.merged = false
	r.forgetUndo()
}
