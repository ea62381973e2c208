package tracker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"switchyard/storage"
)

// UsageIn is what an agent has used since it last told: it is added up (Decision 67).
type UsageIn struct {
	InputTokens     int64       `json:"inputTokens" rules:"min=0,max=9007199254740991"`
	OutputTokens    int64       `json:"outputTokens" rules:"min=0,max=9007199254740991"`
	CacheReadTokens int64       `json:"cacheReadTokens" rules:"min=0,max=9007199254740991"`
	CostMicros      int64       `json:"costMicros" rules:"min=0,max=9007199254740991"`
	Model           Opt[string] `json:"model" rules:"nullable,max=200"`
}

// Usage is the sum of what agents have used. Costs are in millionths of the unit of
// currency that the agents agree on.
type Usage struct {
	InputTokens     int64 `json:"inputTokens"`
	OutputTokens    int64 `json:"outputTokens"`
	CacheReadTokens int64 `json:"cacheReadTokens"`
	CostMicros      int64 `json:"costMicros"`
}

// maxUsage is the largest sum: the largest integer that is exact in a floating-point
// number.
const maxUsage = 1<<53 - 1

func (u *Usage) add(more *Usage) {
	u.InputTokens = min(u.InputTokens+more.InputTokens, maxUsage)
	u.OutputTokens = min(u.OutputTokens+more.OutputTokens, maxUsage)
	u.CacheReadTokens = min(u.CacheReadTokens+more.CacheReadTokens, maxUsage)
	u.CostMicros = min(u.CostMicros+more.CostMicros, maxUsage)
}

// tokens returns the tokens that budgets count.
func (u *Usage) tokens() int64 { return min(u.InputTokens+u.OutputTokens, maxUsage) }

// appendJSON appends the JSON of u.
func (u *Usage) appendJSON(b []byte) []byte {
	b = strconv.AppendInt(append(b, `{"inputTokens":`...), u.InputTokens, 10)
	b = strconv.AppendInt(append(b, `,"outputTokens":`...), u.OutputTokens, 10)
	b = strconv.AppendInt(append(b, `,"cacheReadTokens":`...), u.CacheReadTokens, 10)
	b = strconv.AppendInt(append(b, `,"costMicros":`...), u.CostMicros, 10)
	return append(b, '}')
}

// storedUsage returns the JSON of what agents have used for a stored session; nil for
// nothing.
func storedUsage(rec storage.Record) []byte {
	const field = `,"usage":`
	inner := innerPart(rec.JSON())
	at := bytes.Index(inner, []byte(field+"{"))
	if at < 0 {
		return nil
	}
	text := inner[at+len(field):]
	return text[:bytes.IndexByte(text, '}')+1]
}

// appendUsage appends the usage of a session, as JSON, to its JSON; nil is nothing.
func appendUsage(b, usage []byte) []byte {
	b = append(b, `,"usage":`...)
	if usage == nil {
		return append(b, `{"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"costMicros":0}`...)
	}
	return append(b, usage...)
}

// usageLen is the length of a stored Usage.
const usageLen = 4 * 8

func (u *Usage) appendTo(b []byte) []byte {
	for _, n := range [...]int64{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CostMicros} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// parseUsage parses a stored Usage and returns the bytes after it.
func parseUsage(b []byte) (u Usage, rest []byte, err error) {
	if len(b) < usageLen {
		return u, nil, fmt.Errorf("%w: usage of %d bytes", storage.ErrFormat, len(b))
	}
	for i, n := range [...]*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CostMicros} {
		*n = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	return u, b[usageLen:], nil
}

// usageOrigin is where usage comes from.
type usageOrigin struct {
	session, issue        storage.ID
	agent, project, model string
}

// usageSumKind is the kind of a kept sum.
type usageSumKind byte

// The kinds of sums; they are part of the format on disk.
const (
	usageOfWorkspace usageSumKind = iota
	usageOfAgent
	usageOfProject
	usageOfIssue
	usageOfModel
)

// usageSumKey returns the key of a sum. month is a year times 100 and a month, or 0 for
// the sum of all time.
func usageSumKey(kind usageSumKind, group string, month uint32) storage.Key {
	k := storage.Key(nil).Byte(byte(kind)).Str(group)
	return binary.BigEndian.AppendUint32(k, month)
}

func monthOf(t time.Time) uint32 {
	t = t.UTC()
	return uint32(t.Year()*100 + int(t.Month()))
}

// dayOf returns the number of a day in UTC.
func dayOf(t time.Time) uint32 { return uint32(t.UnixMilli() / (24 * time.Hour).Milliseconds()) }

// Usage is stored three times: as it was reported, by the time of the report; added up by
// day and session; and added up by agent, project, issue, model and in all, for each month
// and for all time. Budgets and questions without times read the last form, questions
// about a time whole days of the second and what is left of the first.

// recordUsage stores usage that was reported now.
func (tx *Tx) recordUsage(o *usageOrigin, u *Usage) error {
	id, err := tx.NewID()
	if err != nil {
		return err
	}
	return tx.storeUsage(tx.now, id, o, u, true)
}

// usageEntryKey returns the key of usage as it was reported.
func usageEntryKey(at time.Time, id storage.ID) storage.Key {
	return storage.Key(nil).U64(uint64(at.UnixMilli())).ID(id)
}

// storeUsage stores usage that was reported at a time. hasIssue is set if the issue is
// there, which alone has sums.
func (tx *Tx) storeUsage(at time.Time, id storage.ID, o *usageOrigin, u *Usage, hasIssue bool) error {
	if err := tx.Writer().AddValue(usageEntryTable, usageEntryKey(at, id), o.appendTo(u.appendTo(nil))); err != nil {
		return fmt.Errorf("store usage: %w", err)
	}
	if err := tx.addUsage(usageDayTable, o.dayKey(dayOf(at)), u, o.agent); err != nil {
		return err
	}
	for _, sum := range o.sums() {
		if sum.kind == usageOfIssue && !hasIssue {
			continue
		}
		for _, month := range [...]uint32{0, monthOf(at)} {
			if err := tx.addUsage(usageSumTable, usageSumKey(sum.kind, sum.group, month), u, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// usageGroup is one of the groups that usage is summed for.
type usageGroup struct {
	kind  usageSumKind
	group string
}

// sums returns the groups that usage of this origin is summed for.
func (o *usageOrigin) sums() [5]usageGroup {
	return [...]usageGroup{{usageOfWorkspace, ""}, {usageOfAgent, o.agent}, {usageOfProject, o.project}, {usageOfIssue, o.issue.String()}, {usageOfModel, o.model}}
}

// usageEffect removes the sums of an issue that is deleted. Those of its agents, project
// and models stay.
func (tx *Tx) usageEffect(w *issueWrite) error {
	if w.new != nil {
		return nil
	}
	prefix := storage.Key(nil).Byte(byte(usageOfIssue)).Str(w.old.Value.id().String())
	months, err := tx.rowKeys(usageSumTable, prefix, maxBudgetRecords)
	if err != nil {
		return err
	}
	for _, month := range months {
		if err := tx.Writer().DeleteValue(usageSumTable, append(prefix[:len(prefix):len(prefix)], month...)); err != nil {
			return fmt.Errorf("remove an issue's usage: %w", err)
		}
	}
	return nil
}

// timeOfMillis returns the time at the beginning of a key.
func timeOfMillis(fields []byte) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(fields))).UTC()
}

// addUsage adds to a stored sum. note is kept behind the sum.
func (tx *Tx) addUsage(table storage.TableID, key storage.Key, u *Usage, note string) error {
	sum, err := tx.usageSum(table, key)
	if err != nil {
		return err
	}
	sum.add(u)
	if err := tx.Writer().SetValue(table, key, append(sum.appendTo(nil), note...)); err != nil {
		return fmt.Errorf("store usage: %w", err)
	}
	return nil
}

// usageSum returns a stored sum; it is zero if there is none.
func (v *View) usageSum(table storage.TableID, key storage.Key) (sum Usage, err error) {
	value, err := v.Value(table, key, nil)
	if err == nil && value != nil {
		sum, _, err = parseUsage(value)
	}
	if err != nil {
		return sum, fmt.Errorf("read usage: %w", err)
	}
	return sum, nil
}

// appendTo appends the origin, behind its usage.
func (o *usageOrigin) appendTo(b []byte) []byte {
	b = append(append(b, o.session[:]...), o.issue[:]...)
	for _, text := range [...]string{o.agent, o.project, o.model} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// parseUsageEntry parses usage as it was reported.
func parseUsageEntry(value []byte) (o usageOrigin, u Usage, err error) {
	u, rest, err := parseUsage(value)
	if err != nil || len(rest) < 32 {
		return o, u, fmt.Errorf("%w: usage entry of %d bytes", storage.ErrFormat, len(value))
	}
	o.session, o.issue, rest = storage.ID(rest[:16]), storage.ID(rest[16:32]), rest[32:]
	for _, text := range [...]*string{&o.agent, &o.project, &o.model} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return o, u, fmt.Errorf("%w: usage entry of %d bytes", storage.ErrFormat, len(value))
		}
		*text, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
	}
	return o, u, nil
}

// dayKey returns the key of the usage of a day.
func (o *usageOrigin) dayKey(day uint32) storage.Key {
	k := storage.Key(binary.BigEndian.AppendUint32(nil, day))
	return k.ID(o.issue).ID(o.session).Str(o.project).Str(o.model)
}

// parseUsageDay parses the usage of a day.
func parseUsageDay(fields, value []byte) (day uint32, o usageOrigin, u Usage, err error) {
	u, agent, err := parseUsage(value)
	if err != nil {
		return 0, o, u, err
	}
	bad := fmt.Errorf("%w: usage of a day with %d bytes of key", storage.ErrFormat, len(fields))
	if len(fields) < 4+32+2 {
		return 0, o, u, bad
	}
	day = binary.BigEndian.Uint32(fields)
	o.issue, o.session, o.agent = storage.ID(fields[4:20]), storage.ID(fields[20:36]), string(agent)
	project, rest, ok := cutStr(fields[36:])
	if !ok {
		return 0, o, u, bad
	}
	model, rest, ok := cutStr(rest)
	if !ok || len(rest) > 0 {
		return 0, o, u, bad
	}
	o.project, o.model = project, model
	return day, o, u, nil
}

// cutStr decodes the text that Key.Str wrote at the beginning of b.
func cutStr(b []byte) (text string, rest []byte, ok bool) {
	for i, c := range b {
		if c == 0 {
			return unStr(b[:i+1]), b[i+1:], true
		}
	}
	return "", nil, false
}

// use adds usage to the session and to all sums that count it, and notes the budgets that it
// uses up: endOverspent must follow.
func (c *sessionChange) use(given *Opt[UsageIn]) error {
	in := given.Ptr()
	if in == nil {
		return nil
	}
	u := Usage{InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, CacheReadTokens: in.CacheReadTokens, CostMicros: in.CostMicros}
	if u == (Usage{}) {
		return nil
	}
	tx, s := c.tx, &c.s
	sum, before := u, Usage{}
	if s.Inner.Usage != nil {
		before = *s.Inner.Usage
		sum.add(&before)
	}
	s.Inner.Usage = &sum
	note(&c.changes, "usage", &before, &sum)
	o := usageOrigin{session: s.id(), issue: s.issue(), agent: s.AgentID, model: in.Model.Value}
	var err error
	if o.project, err = tx.projectOf(o.issue); err != nil {
		return err
	}
	if err := tx.recordUsage(&o, &u); err != nil {
		return err
	}
	return tx.spend(&o, &u)
}

// projectOf returns the project of an issue; "" for none.
func (v *View) projectOf(issue storage.ID) (project string, err error) {
	_, err = issues.Record(v, issueKey(issue), func(rec storage.Record) error {
		project, err = projectIn(rec)
		return err
	})
	return project, err
}
