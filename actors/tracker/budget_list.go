package tracker

import (
	"fmt"

	"switchyard/storage"
)

// BudgetList are the budgets of a workspace, in the order of their scopes.
type BudgetList struct {
	Budgets []Budget `json:"budgets"`
}

// ListBudgets lists the budgets, without those of issues that the caller may not see.
var ListBudgets = NewQuery[None, BudgetList]("ListBudgets", "List the budgets", Needs{Read, "sessions"}, listBudgets, FromSnapshot)

func listBudgets(v *View, _ *None) (Reply, error) {
	list := BudgetList{Budgets: []Budget{}}
	err := budgets.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := budgets.Decode(rec)
		if err != nil {
			return false, err
		}
		scope, _ := parseBudgetScope(row.Value.Scope)
		if scope.kind == usageOfIssue {
			id, _ := storage.ParseID(scope.id)
			if seen, err := v.hasIssue(id); err != nil || !seen {
				return true, err
			}
		}
		shown, err := v.shownBudget(scope, &row.Value)
		list.Budgets = append(list.Budgets, shown)
		return true, err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list the budgets: %w", err)
	}
	return jsonReply(Done, &list)
}

// checkBudgets checks that a scope is suspended for a budget exactly if its budget is used up.
// That of a month may have been used up in an earlier one, until its timer has run.
func checkBudgets(v *storage.View, report reporter) error {
	err := budgets.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := budgets.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		b := &row.Value
		there, err := v.Has(suspensionTable, suspensionKey(parkBudget, b.Scope))
		if err != nil {
			return false, err
		}
		set, err := v.Has(timerTable, timerKey(nil, timerBudgetMonth, b.Scope))
		if err != nil {
			return false, err
		}
		if set != (there && b.Period == BudgetMonth) {
			report(budgets.Name, pk, "its scope is suspended: %t, and the timer of its month is set: %t", there, set)
		}
		if b.Period == BudgetMonth {
			return true, nil
		}
		scope, _ := parseBudgetScope(b.Scope)
		var u Usage
		value, err := v.Value(usageSumTable, usageSumKey(scope.kind, scope.id, 0), nil)
		if err == nil && value != nil {
			u, _, err = parseUsage(value)
		}
		if err == nil && b.exceededBy(&u) != there {
			report(budgets.Name, pk, "it is used up: %t, and its scope is suspended: %t", !there, there)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	return v.Rows(suspensionTable, []byte{byte(parkBudget)}, nil, func(fields, _ []byte) (bool, error) {
		there, err := v.Has(budgetTable, fields[1:])
		if err == nil && !there {
			report("suspended scope", fields, "no budget suspends it")
		}
		return true, err
	})
}
