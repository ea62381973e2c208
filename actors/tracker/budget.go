package tracker

import (
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// BudgetPeriod is the time that a budget is for.
type BudgetPeriod string

// The periods of budgets.
const (
	BudgetMonth BudgetPeriod = "month" // a calendar month in UTC, each anew
	BudgetTotal BudgetPeriod = "total"
)

// EnumValues implements Enumerated.
func (BudgetPeriod) EnumValues() []string {
	return enumTexts([]BudgetPeriod{BudgetMonth, BudgetTotal})
}

// Budget limits what agents may use for a scope in a period, and says what they have used
// (Decision 67). A limit that is null does not limit.
type Budget struct {
	BudgetLimits
	SpentMicros int64 `json:"spentMicros"`
	SpentTokens int64 `json:"spentTokens"`
}

// BudgetLimits are the stored part of a budget. The spent amount is a sum of usage.
type BudgetLimits struct {
	Scope      string       `json:"scope"`
	CostMicros *int64       `json:"costMicros"`
	Tokens     *int64       `json:"tokens"`
	Period     BudgetPeriod `json:"period"`
}

// budgets has one budget for each scope.
var budgets = storage.Table[BudgetLimits]{
	ID:      budgetTable,
	Name:    "budget",
	Key:     func(k storage.Key, b *BudgetLimits) storage.Key { return budgetKey(k, b.Scope) },
	Changed: audited(auditBudget, func(b *BudgetLimits) string { return b.Scope }),
}

func budgetKey(k storage.Key, scope string) storage.Key { return k.Str(scope) }

var _ = declareTable(&budgets, atMost(10_000, "budgets"))

// budgetScope is a parsed scope.
type budgetScope struct {
	kind usageSumKind
	id   string // empty for the workspace
}

func (s budgetScope) String() string {
	switch s.kind {
	case usageOfAgent:
		return scopeAgent + s.id
	case usageOfProject:
		return scopeProject + s.id
	case usageOfIssue:
		return scopeIssue + s.id
	}
	return scopeWorkspace
}

// parseBudgetScope parses a scope and reports whether it is one.
func parseBudgetScope(text string) (s budgetScope, ok bool) {
	if text == scopeWorkspace {
		return budgetScope{kind: usageOfWorkspace}, true
	}
	for kind, prefix := range map[usageSumKind]string{usageOfAgent: scopeAgent, usageOfProject: scopeProject, usageOfIssue: scopeIssue} {
		if id, is := strings.CutPrefix(text, prefix); is {
			return budgetScope{kind, id}, isScopeName(id, 255)
		}
	}
	return s, false
}

func isBudgetScope(text string) bool {
	_, ok := parseBudgetScope(text)
	return ok
}

// budgetScopeOf returns the scope of a path. Its issue must be one that the caller sees.
func (v *View) budgetScopeOf(text string) (budgetScope, error) {
	s, _ := parseBudgetScope(text)
	if s.kind == usageOfIssue {
		id, err := v.seenIssue(s.id)
		if err != nil {
			return s, err
		}
		s.id = id.String()
	}
	return s, nil
}

// budget returns the budget of a scope, or nil.
func (v *View) budget(scope budgetScope) (*storage.Row[BudgetLimits], error) {
	row, err := budgets.Get(v, budgetKey(nil, scope.String()))
	if err != nil {
		return nil, fmt.Errorf("read a budget: %w", err)
	}
	return row, nil
}

// spent returns what was used in a budget's present period.
func (v *View) spent(scope budgetScope, period BudgetPeriod) (Usage, error) {
	month := uint32(0)
	if period == BudgetMonth {
		month = monthOf(v.now)
	}
	return v.usageSum(usageSumTable, usageSumKey(scope.kind, scope.id, month))
}

// shownBudget returns a budget in the form that clients get.
func (v *View) shownBudget(scope budgetScope, b *BudgetLimits) (Budget, error) {
	u, err := v.spent(scope, b.Period)
	return Budget{BudgetLimits: *b, SpentMicros: u.CostMicros, SpentTokens: u.tokens()}, err
}

// exceededBy reports whether usage is past one of the limits.
func (b *BudgetLimits) exceededBy(u *Usage) bool {
	return b.CostMicros != nil && u.CostMicros > *b.CostMicros || b.Tokens != nil && u.tokens() > *b.Tokens
}

// nextMonth returns the time when a month's budgets begin anew.
func nextMonth(now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
}

// LaneBudget is what a session may still use by the tightest of its budgets; null where
// none limits that. Stop is set if one of them is used up.
type LaneBudget struct {
	RemainingMicros *int64 `json:"remainingMicros"`
	RemainingTokens *int64 `json:"remainingTokens"`
	Stop            bool   `json:"stop"`
}

// hasBudgets reports whether the workspace has any budget.
func (v *View) hasBudgets() (bool, error) {
	subject := recordCountSubject(budgetTable)
	n, err := v.Number(recordCountTable, subject[:])
	return n > 0, err
}

// hasBudgets is that of View, from the counters of the workspace's actor.
func (tx *Tx) hasBudgets() (bool, error) {
	n, err := tx.Counter(recordCountTable, recordCountSubject(budgetTable))
	return n > 0, err
}

// eachBudget calls fn for the budgets that count the usage of a session.
func (v *View) eachBudget(o *usageOrigin, fn func(scope budgetScope, b *BudgetLimits) error) error {
	for _, sum := range o.sums() {
		if sum.kind == usageOfModel || sum.kind != usageOfWorkspace && sum.group == "" {
			continue
		}
		scope := budgetScope{sum.kind, sum.group}
		row, err := v.budget(scope)
		if err == nil && row != nil {
			err = fn(scope, &row.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// budgetLeft returns what a session may still use, nil if no budget counts its usage, and
// the scope of a budget that is used up.
func (v *View) budgetLeft(agent string, issue storage.ID) (left *LaneBudget, over budgetScope, err error) {
	o := usageOrigin{issue: issue, agent: agent}
	if o.project, err = v.projectOf(o.issue); err != nil {
		return nil, over, err
	}
	err = v.eachBudget(&o, func(scope budgetScope, b *BudgetLimits) error {
		u, err := v.spent(scope, b.Period)
		if err != nil {
			return err
		}
		if left == nil {
			left = &LaneBudget{}
		}
		if !left.Stop && b.exceededBy(&u) {
			left.Stop, over = true, scope
		}
		tighten(&left.RemainingMicros, b.CostMicros, u.CostMicros)
		tighten(&left.RemainingTokens, b.Tokens, u.tokens())
		return nil
	})
	return left, over, err
}

// tighten lowers what is left to that of another limit.
func tighten(left **int64, limit *int64, spent int64) {
	if limit == nil {
		return
	}
	if rest := max(0, *limit-spent); *left == nil || rest < **left {
		*left = &rest
	}
}

// appendBudget appends what a session may still use, as a field of JSON.
func appendBudget(b []byte, left *LaneBudget) ([]byte, error) {
	b = append(b, `,"budget":`...)
	if left == nil {
		return append(b, "null"...), nil
	}
	text, err := json.Marshal(left)
	if err != nil {
		return nil, fmt.Errorf("encode a budget: %w", err)
	}
	return append(b, text...), nil
}

// noBudget is the end of a session's JSON in a workspace without budgets.
const noBudget = `,"budget":null`

// appendBudgetOf appends what a stored session may still use.
func (v *View) appendBudgetOf(b []byte, rec storage.Record) ([]byte, error) {
	some, err := v.hasBudgets()
	if err != nil || !some {
		return append(b, noBudget...), err
	}
	row, err := sessions.Decode(rec)
	if err != nil {
		return nil, err
	}
	left, _, err := v.budgetLeft(row.Value.AgentID, row.Value.issue())
	if err != nil {
		return nil, err
	}
	return appendBudget(b, left)
}

// laneBudget returns what a session may still use, or nil.
func (tx *Tx) laneBudget(s *sessionRecord) (*LaneBudget, error) {
	if some, err := tx.hasBudgets(); err != nil || !some {
		return nil, err
	}
	left, _, err := tx.budgetLeft(s.AgentID, s.issue())
	return left, err
}
