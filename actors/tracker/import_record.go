package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/storage"
)

// importing is one request of an import.
type importing struct {
	tx     *Tx
	record *importRecord
	line   *importedLine
	tick   uint64 // of the newest id
	// logs has the activities that have come, by session, until they are stored.
	logs map[storage.ID]*importedLog
}

// clockAhead is the time by which ids of an import may be ahead of this owner's clock. The command's
// own time would follow the ids of the lines before.
const clockAhead = time.Minute

// storeRecord stores the record of a line.
func (im *importing) storeRecord(l *importedLine) error {
	im.line = l
	i := slices.IndexFunc(transferKinds, func(k transferKind) bool { return k.name == l.Type })
	if i < 0 {
		return l.fault("Unknown type %q.", l.Type)
	}
	if len(l.Data) == 0 || l.Data[0] != '{' {
		return l.fault("data must be an object.")
	}
	return transferKinds[i].take(im, l.Data)
}

// refuse returns the error for the line at hand.
func (im *importing) refuse(format string, args ...any) error { return im.line.fault(format, args...) }

// decode reads the data of a line into a record, sets the workspace that it is of, and
// checks what the types of its fields ask for.
func (im *importing) decode(data []byte, record any) error {
	if err := json.Unmarshal(data, record); err != nil {
		return im.refuse("Not a record of type %s: %v.", im.line.Type, err)
	}
	v := reflect.ValueOf(record).Elem()
	if of := v.FieldByName("OrganizationID"); of.IsValid() {
		of.SetString(im.tx.Workspace().String())
	}
	if fault := transferFault(im.line.Type, record); fault != "" {
		return im.refuse("%s", fault)
	}
	return im.noteIDs(v)
}

// noteIDs keeps the newest id of a record, for the clock.
func (im *importing) noteIDs(v reflect.Value) error {
	id := v.FieldByName("ID")
	if !id.IsValid() || id.Kind() != reflect.String {
		return nil
	}
	raw, ok := storage.ParseID(id.String())
	if !ok || !plausibleID(raw) {
		return nil // an agent's or user's id, or one that transferFault has refused
	}
	tick := uint64(storage.DocOf(raw))
	if tick>>12 > uint64(im.tx.wall.Add(clockAhead).UnixMilli()) {
		return im.refuse("data.id is of a time to come.")
	}
	im.tick = max(im.tick, tick)
	return nil
}

// plausibleID reports whether an id is a UUIDv7.
func plausibleID(id storage.ID) bool { return id[6]>>4 == 7 && id[8]>>6 == 2 }

// moveClock moves the workspace's clock to the newest id: ids made from now on are
// greater.
func (im *importing) moveClock() error {
	clock, err := im.tx.Counter(clockTable, storage.ID{})
	if err != nil || clock >= im.tick {
		return err
	}
	return im.tx.SetCounter(clockTable, storage.ID{}, im.tick)
}

// opaqueIDs are the types of ids that may have any form.
var opaqueIDs = map[reflect.Type]bool{reflect.TypeFor[UserID](): true, reflect.TypeFor[AgentID](): true, reflect.TypeFor[WorkspaceID](): true}

// transferFault returns what is wrong with the fields of a record from a line of a type, by
// the types of the fields and their lengths, or "". An id with the tag transfer:"any" may have
// any form, because the service takes it as it comes.
func transferFault(lineType string, record any) string {
	return faultIn(importLengths[lineType], "data", reflect.ValueOf(record).Elem(), false)
}

func faultIn(lengths map[string]int, path string, v reflect.Value, optional bool) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return faultIn(lengths, path, v.Elem(), false)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			at := path + "." + name
			if f.Anonymous {
				at = path
			}
			field, optional := v.Field(i), strings.Contains(options, "omitempty")
			if f.Tag.Get("transfer") == "any" && !field.IsNil() {
				field = reflect.ValueOf(field.Elem().String()) // a text, without the form that its type has
			}
			if fault := faultIn(lengths, at, field, optional); fault != "" {
				return fault
			}
			if fault := faultOfWord(at, f.Tag.Get("enum"), field, optional); fault != "" {
				return fault
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() && !numbersFit(v.Bytes()) {
			return path + " has a number out of the range of a double-precision number."
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return "" // JSON, which was read
		}
		for i := range v.Len() {
			if fault := faultIn(lengths, fmt.Sprintf("%s[%d]", path, i), v.Index(i), false); fault != "" {
				return fault
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if fault := faultIn(lengths, path+"."+key.String(), v.MapIndex(key), false); fault != "" {
				return fault
			}
		}
	case reflect.String:
		if most := lengthAt(lengths, path); isLonger(v.String(), most) {
			return fmt.Sprintf("%s must be at most %d characters long.", path, most)
		}
		return faultOfText(path, v, optional)
	}
	return ""
}

// numbersFit reports whether every number in a JSON value fits a double. The value is kept as it
// is written, and clients could not read an answer with it otherwise (Decision 3).
func numbersFit(value []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return true // the end: that it is JSON is checked elsewhere
		}
		if token.Kind() != '0' {
			continue
		}
		if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
			return false
		}
	}
}

// faultOfWord says what is wrong with a text that must be one of some words, or "".
func faultOfWord(path, words string, v reflect.Value, optional bool) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem() // not valid for nil
	}
	switch {
	case words == "" || v.Kind() != reflect.String || optional && v.Len() == 0, slices.Contains(strings.Split(words, ","), v.String()):
		return ""
	}
	return path + " must be one of " + strings.ReplaceAll(words, ",", ", ") + "."
}

// faultOfTime says what is wrong with a time, or "".
func faultOfTime(t Timestamp) string {
	if at, err := time.Parse(timestampLayout, string(t)); err != nil || At(at) != t {
		return " must be a time such as 2026-11-20T21:30:00.123Z."
	}
	return ""
}

func faultOfText(path string, v reflect.Value, optional bool) string {
	text := v.String()
	if text == "" && optional {
		return ""
	}
	if !indexable(text) {
		return path + " must not have a NUL."
	}
	if v.Type() == reflect.TypeFor[Timestamp]() {
		if fault := faultOfTime(Timestamp(text)); fault != "" {
			return path + fault
		}
		return ""
	}
	if e, ok := v.Interface().(Enumerated); ok {
		if !slices.Contains(e.EnumValues(), text) {
			return path + " must be one of " + strings.Join(e.EnumValues(), ", ") + "."
		}
		return ""
	}
	named := v.Type().PkgPath() != "" && strings.HasSuffix(v.Type().Name(), "ID")
	if named && !opaqueIDs[v.Type()] || path == "data.id" && !opaqueIDs[v.Type()] {
		if id, ok := storage.ParseID(text); !ok || !plausibleID(id) {
			return path + " must be an id of the service."
		}
	}
	return ""
}

// restore stores a record that comes from a file.
func restore[T any](im *importing, table *storage.Table[T], record *T) error {
	taken, err := table.Taken(im.tx, record)
	if err != nil {
		return fmt.Errorf("look for a record: %w", err)
	}
	if taken {
		return im.refuse("There is such a record already: its id, or a value that must be unique, is taken.")
	}
	if _, bounded := quotas[table.ID]; bounded {
		if err := im.tx.countRecord(table.ID, 1); err != nil {
			return err
		}
	}
	if _, err := table.Insert(im.tx, record); err != nil {
		return fmt.Errorf("store a record: %w", err)
	}
	return nil
}

// takeRecord stores the records of a table; look, if not nil, checks and completes each.
func takeRecord[T any](table *storage.Table[T], look func(im *importing, record *T) error) func(*importing, []byte) error {
	return func(im *importing, data []byte) error {
		var record T
		if err := im.decode(data, &record); err != nil {
			return err
		}
		if look != nil {
			if err := look(im, &record); err != nil {
				return err
			}
		}
		return restore(im, table, &record)
	}
}

// needNewer refuses a record whose id is not newer than that of the record which it belongs to. An export has such
// records in the order of their ids, so the export of this workspace would have it first, and could not be taken.
func (im *importing) needNewer(id string, owner storage.ID) error {
	if raw, _ := storage.ParseID(id); bytes.Compare(raw[:], owner[:]) <= 0 {
		return im.refuse("data.id must be newer than that of the record that it belongs to, %s.", owner)
	}
	return nil
}

// wasDeleted notes that sessions or usage came of an issue that is not there: it was deleted where the file comes from.
// Its own line can't come later. The export of this workspace would have the issue first, and another import then
// would not take what belongs to it as that of a deleted one.
func (im *importing) wasDeleted(issue storage.ID) {
	im.record.LastIssue = max(im.record.LastIssue, uint64(storage.DocOf(issue)))
}

// needIssue refuses a line whose issue is not there.
func (im *importing) needIssue(id IssueID) (*storage.Row[Issue], error) {
	raw, _ := storage.ParseID(id)
	row, err := issues.Get(im.tx, issueKey(raw))
	if err != nil {
		return nil, fmt.Errorf("read an issue: %w", err)
	}
	if row == nil {
		return nil, im.refuse("There is no issue %s before this line.", id)
	}
	return row, nil
}

// maxAwaiting bounds the drafts, and the tickets, of an issue that come before it.
const maxAwaiting = 100_000

// awaitIssue counts a draft or a ticket whose issue is not there yet: a draft may have made the
// issue, and a ticket may have got a younger one.
func (im *importing) awaitIssue(id *IssueID) error {
	if id == nil {
		return nil
	}
	issue, _ := storage.ParseID(*id)
	there, err := im.tx.Has(issueTable, issueKey(issue))
	if err != nil {
		return fmt.Errorf("look for an issue: %w", err)
	}
	if !there {
		im.record.Awaiting++
	}
	return nil
}

// meetAwaiting discounts the drafts and tickets that came before their issue.
func (im *importing) meetAwaiting(t *Issue) error {
	if im.record.Awaiting <= 0 {
		return nil
	}
	id := t.id()
	ofDrafts, err := im.tx.rowKeys(draftByAbout, aboutKey(nil, aboutIssue, t.ID), maxAwaiting+1)
	if err != nil {
		return err
	}
	ofTickets, err := im.tx.rowKeys(ticketByIssue, id[:], maxAwaiting+1)
	if err != nil {
		return err
	}
	if max(len(ofDrafts), len(ofTickets)) > maxAwaiting {
		return im.refuse("More than %d drafts or tickets come before their issue.", maxAwaiting)
	}
	im.record.Awaiting -= int64(len(ofDrafts) + len(ofTickets))
	return nil
}

// needTeam refuses a line whose team is not there.
func (im *importing) needTeam(id TeamID) error {
	raw, _ := storage.ParseID(id)
	there, err := im.tx.Has(teamTable, storage.Key(nil).DescID(raw))
	if err == nil && !there {
		err = im.refuse("There is no team %s before this line.", id)
	}
	return err
}

// awaitTeam returns the team of an issue, and notes a team that is not there yet. An issue can be
// moved to a team that was made after it, and the lines have the order of creation.
func (im *importing) awaitTeam(id TeamID) (storage.ID, error) {
	team, _ := storage.ParseID(id)
	there, err := im.tx.Has(teamTable, storage.Key(nil).DescID(team))
	if err != nil {
		return team, fmt.Errorf("look for a team: %w", err)
	}
	if known := TeamID(team.String()); !there && !slices.Contains(im.record.Teams, known) {
		if uint64(len(im.record.Teams)) >= quotas[teamTable].most {
			return team, im.refuse("The issues before this line have %s.", Counted(len(im.record.Teams), "team that is missing", "teams that are missing"))
		}
		im.record.Teams = append(im.record.Teams, known)
	}
	return team, nil
}

// needSession refuses a line whose session is not there.
func (im *importing) needSession(id SessionID) (*storage.Row[sessionRecord], error) {
	raw, _ := storage.ParseID(id)
	row, err := sessions.Get(im.tx, sessionKey(raw))
	if err != nil {
		return nil, fmt.Errorf("read a session: %w", err)
	}
	if row == nil {
		return nil, im.refuse("There is no session %s before this line.", id)
	}
	return row, nil
}
