package tracker

import "fmt"

// BudgetIn identifies a budget by its scope.
type BudgetIn struct {
	Scope string `path:"scope" form:"budgetScope"`
}

// PutBudgetIn sets the budget of a scope.
type PutBudgetIn struct {
	BudgetIn
	CostMicros Opt[int64]   `json:"costMicros" rules:"nullable,min=0,max=9007199254740991"`
	Tokens     Opt[int64]   `json:"tokens" rules:"nullable,min=0,max=9007199254740991"`
	Period     BudgetPeriod `json:"period" rules:"required"`
}

// ShownBudget is the answer to PutBudget.
type ShownBudget struct {
	Budget Budget `json:"budget"`
}

// PutBudget sets the budget of a scope in place of the one before (Decision 67).
var PutBudget = NewCommand[PutBudgetIn, ShownBudget]("PutBudget", "Set a budget", Needs{Level: Admin}, putBudget, Refuses(CodeConflict), Audits(auditBudget))

func putBudget(tx *Tx, in *PutBudgetIn) (Reply, error) {
	scope, err := tx.budgetScopeOf(in.Scope)
	if err != nil {
		return Reply{}, err
	}
	b := BudgetLimits{Scope: scope.String(), CostMicros: in.CostMicros.Ptr(), Tokens: in.Tokens.Ptr(), Period: in.Period}
	row, err := tx.budget(scope)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		if err := tx.countRecord(budgetTable, 1); err != nil {
			return Reply{}, err
		}
		_, err = budgets.Insert(tx, &b)
	} else {
		_, err = budgets.Update(tx, row, &b)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("store a budget: %w", err)
	}
	if err := tx.applyBudget(scope); err != nil {
		return Reply{}, err
	}
	shown, err := tx.shownBudget(scope, &b)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &ShownBudget{shown})
}

// DeleteBudget removes a budget. Sessions that waited for it can be claimed.
var DeleteBudget = NewCommand[BudgetIn, None]("DeleteBudget", "Delete a budget", Needs{Level: Admin}, deleteBudget, WithSpaceEffect(FreesSpace), Audits(auditBudget))

func deleteBudget(tx *Tx, in *BudgetIn) (Reply, error) {
	scope, err := tx.budgetScopeOf(in.Scope)
	if err != nil {
		return Reply{}, err
	}
	found, err := tx.dropBudget(scope)
	if err == nil && !found {
		err = NotFound("budget")
	}
	return Reply{Outcome: NoContent}, err
}

// dropBudget removes the budget of a scope, and reports whether there was one.
func (tx *Tx) dropBudget(scope budgetScope) (found bool, err error) {
	if some, err := tx.hasBudgets(); err != nil || !some {
		return false, err
	}
	row, err := tx.budget(scope)
	if err != nil || row == nil {
		return false, err
	}
	if err := budgets.Delete(tx, row); err != nil {
		return false, fmt.Errorf("remove a budget: %w", err)
	}
	if err := tx.countRecord(budgetTable, -1); err != nil {
		return false, err
	}
	return true, tx.applyBudget(scope)
}

// budgetEffect removes the budget of an issue that is deleted, and gives the sessions of one
// that changes its project their place anew.
func (tx *Tx) budgetEffect(w *issueWrite) error {
	switch {
	case w.old == nil:
		return nil
	case w.new == nil:
		_, err := tx.dropBudget(budgetScope{usageOfIssue, w.old.Value.id().String()})
		return err
	case fromPtr(w.old.Value.ProjectID) == fromPtr(w.new.Value.ProjectID):
		return nil
	}
	scopes, err := tx.suspended(parkBudget)
	if err != nil || len(scopes) == 0 {
		return err
	}
	return tx.placeSessions(w.new.Value.id(), w.new.Value.Priority)
}
