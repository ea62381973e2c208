package tracker

import (
	"container/list"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// The tail of a search index are the issues that no segment has in their present state:
// new ones, and those that were changed since. A short tail is not indexed, because reading
// it costs less than a segment, most of which is words that few of its issues have.
const (
	// indexFew is how many issues a tail has before a segment is made of them.
	indexFew = 128
	// indexSoon is how long such a tail may wait for more.
	indexSoon = 10 * time.Second
	// indexMany is how many issues don't wait. A creation compares its title with those
	// of all of them, and searches go through the issues.
	indexMany = 512
	// indexCrowded is how many issues don't wait when the node's memory for tails is used
	// up. It is also how often a longer tail asks again.
	indexCrowded = 32
	// indexLong is the text in bytes of an issue that does not wait for others, so that the texts of a tail that
	// stays are less than 8 MiB.
	indexLong = 64 << 10
	// indexText is the text in bytes of a tail that does not wait. Searches for similar issues read no more than
	// similarTailText of a tail. The other half of that is for what comes while the segment is made.
	indexText = similarTailText / 2
)

// Tails is the memory of a node for the tails of its workspaces' search indexes: for the
// titles, which each active workspace keeps, and for the words that searches for similar
// issues met. It also bounds the memory for columns of the titles that are indexed, and for
// lists of the titles with a term. It may be used by many goroutines. A nil *Tails keeps no
// words, and bounds nothing.
type Tails struct {
	most    int64 // bytes of titles, as many of words, and eight times as many of columns and terms
	titles  atomic.Int64
	columns atomic.Int64
	terms   atomic.Int64 // three times as many at most

	mu    sync.Mutex
	words int64      // bytes
	used  *list.List // of *tailWords, those that were used last in front
	of    map[storage.ID]*list.Element
	// awaited are the workspaces in which a search went through a long tail; at most maxAwaited.
	awaited map[storage.ID]struct{}

	// makePairs begins to make the pairs of terms of a segment's titles, where these are pairedFrom at least, on a
	// goroutine of its own; nil: there are none. It returns false when that has to wait.
	makePairs  MakePairs
	pairedFrom uint32
}

// maxAwaited bounds Tails.awaited. Beyond it all are forgotten: searches name them again.
const maxAwaited = 1024

// NewTails makes the memory of a node, of so many bytes for tails and four times as many for
// what is kept of indexed titles.
func NewTails(bytes int64) *Tails {
	return &Tails{most: bytes / 2, used: list.New(), of: map[storage.ID]*list.Element{}, awaited: map[storage.ID]struct{}{}}
}

// MakePairs begins to make the pairs of terms of the titles of a workspace's segment, with the order's Make, on a
// goroutine of its own. It returns false to be asked again.
type MakePairs func(storage.Shard, storage.ID, *storage.PairsOrder) bool

// Pair has the pairs of terms made of segments of so many titles at least. It is to be called before the memory is used.
func (t *Tails) Pair(from uint32, fn MakePairs) { t.pairedFrom, t.makePairs = from, fn }

// TailsUse is the memory of tails, in bytes.
type TailsUse struct{ Titles, Words, Columns, Terms int64 }

// Use returns the memory in use.
func (t *Tails) Use() TailsUse {
	t.mu.Lock()
	defer t.mu.Unlock()
	return TailsUse{Titles: t.titles.Load(), Words: t.words, Columns: t.columns.Load(), Terms: t.terms.Load()}
}

// count adds bytes of titles.
func (t *Tails) count(bytes int64) {
	if t != nil {
		t.titles.Add(bytes)
	}
}

// reserveColumns takes bytes for columns of indexed titles, and reports whether there are as many left. A negative
// number gives bytes back.
func (t *Tails) reserveColumns(bytes int64) bool {
	if t == nil {
		return true
	}
	if t.columns.Add(bytes)+t.terms.Load() > 8*t.most && bytes > 0 {
		t.columns.Add(-bytes)
		return false
	}
	return true
}

// reserveTerms is reserveColumns for lists of the titles with a term. Most of the memory is left to the columns, which
// save more of a search by the byte.
func (t *Tails) reserveTerms(bytes int64) bool {
	if t == nil {
		return true
	}
	if terms := t.terms.Add(bytes); (terms > 3*t.most || terms+t.columns.Load() > 8*t.most) && bytes > 0 {
		t.terms.Add(-bytes)
		return false
	}
	return true
}

// Crowding is how many times the titles of all workspaces use up their memory.
func (t *Tails) Crowding() int {
	if t == nil {
		return 0
	}
	return int(t.titles.Load() / max(t.most, 1))
}

// await notes that a search went through so many issues of a workspace's tail that it would have taken
// less time with a segment of them.
func (t *Tails) await(workspace storage.ID) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.awaited) >= maxAwaited {
		clear(t.awaited)
	}
	t.awaited[workspace] = struct{}{}
}

// TakeAwaited reports whether a search has gone through many issues of a workspace's tail since it was asked
// for the last time.
func (t *Tails) TakeAwaited(workspace storage.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, is := t.awaited[workspace]
	delete(t.awaited, workspace)
	return is
}

// tailWords are the words of issues of one workspace's tail.
type tailWords struct {
	workspace storage.ID
	mu        sync.Mutex
	issues    map[storage.Doc]*issueWords
	bytes     int64 // of issues
	counted   int64 // of all, what Tails.words has; guarded by Tails.mu
}

// issueWords are the stems of an issue as its record was, with their weights. The record's version does not
// tell its states apart alone: a workspace that was deleted can be imported again, under the same id.
type issueWords struct {
	version uint64
	sum     uint64 // of the record's JSON
	length  byte
	text    int // bytes of title and description
	weights []byte
	stems   []uint64 // hashes
}

// tailWordsBytes is the memory of a workspace's words without those of each issue.
const tailWordsBytes = 256

// issueWordsBytes is the memory of an issue's words without the part of each stem.
const issueWordsBytes = 128

func (w *issueWords) bytes() int64 { return issueWordsBytes + 9*int64(len(w.stems)) }

// workspace gives the words of a workspace's tail.
func (t *Tails) workspace(id storage.ID) *tailWords {
	if t == nil {
		return &tailWords{issues: map[storage.Doc]*issueWords{}}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.of[id]
	if e == nil {
		e = t.used.PushFront(&tailWords{workspace: id, issues: map[storage.Doc]*issueWords{}})
		t.of[id] = e
	}
	t.used.MoveToFront(e)
	return e.Value.(*tailWords) //nolint:forcetypeassert // the list has nothing else
}

// trim counts what a search has changed, and drops the words that were unused for the
// longest time while there are too many.
func (t *Tails) trim(w *tailWords) {
	if t == nil {
		return
	}
	w.mu.Lock()
	bytes := tailWordsBytes + w.bytes
	w.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.of[w.workspace]; e != nil && e.Value == w { // else it was dropped meanwhile
		t.words += bytes - w.counted
		w.counted = bytes
	}
	for e := t.used.Back(); e != nil && t.words > t.most; e = t.used.Back() {
		old := t.used.Remove(e).(*tailWords) //nolint:forcetypeassert // the list has nothing else
		delete(t.of, old.workspace)
		t.words -= old.counted
	}
}

// find gives the words of an issue, which are read from its record unless they are known.
func (w *tailWords) find(v *View, doc storage.Doc, rec storage.Record) (*issueWords, error) {
	w.mu.Lock()
	known := w.issues[doc]
	w.mu.Unlock()
	sum := xxhash.Sum64(rec.JSON())
	if known != nil && known.version == rec.Version() && known.sum == sum {
		return known, nil
	}
	made, err := readIssueWords(v, rec)
	if err != nil {
		return nil, err
	}
	made.sum = sum
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.issues[doc]; old != nil {
		w.bytes -= old.bytes()
	}
	w.issues[doc] = made
	w.bytes += made.bytes()
	return made, nil
}

// trim drops the words of issues that are in the tail no longer, once they are as many as
// those that are.
func (w *tailWords) trim(tail []tailIssue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.issues) < 2*len(tail)+indexFew {
		return
	}
	clear(w.issues)
	w.bytes = 0
	for i := range tail {
		w.issues[tail[i].doc] = tail[i].words
		w.bytes += tail[i].words.bytes()
	}
}

func readIssueWords(v *View, rec storage.Record) (*issueWords, error) {
	var t searchText
	if err := json.Unmarshal(rec.JSON(), &t); err != nil {
		return nil, fmt.Errorf("read an issue: %w", err)
	}
	made := &issueWords{version: rec.Version(), text: len(t.Title) + len(text(t.Description))}
	places := make(map[uint64]int, 64)
	count := 0
	for _, part := range [...]struct {
		text   string
		weight byte
	}{{t.Title, 2}, {text(t.Description), 1}} {
		add := func(word []byte) {
			count += int(part.weight)
			forms := formsOf(word)
			if forms.stop {
				return
			}
			at, is := places[forms.term.hash]
			if !is {
				at = len(made.stems)
				places[forms.term.hash] = at
				made.stems, made.weights = append(made.stems, forms.term.hash), append(made.weights, 0)
			}
			made.weights[at] = min(made.weights[at], 255-part.weight) + part.weight
		}
		err := v.eachPiece(part.text, func(piece string) bool {
			eachWord(piece, add)
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	made.length = lengthByte(count)
	return made, nil
}
