package tracker

import "fmt"

// LogActivitiesIn is one activity, or a list of them.
type LogActivitiesIn struct {
	ID SessionID `path:"id"`
	ActivityFields
	Activities Opt[[]ActivityFields] `json:"activities" rules:"min=1,max=100"`
	// Plan replaces the session's plan (Decision 65).
	Plan Opt[[]PlanStep] `json:"plan" rules:"max=100"`
	// Usage is what was used since it was last told (Decision 67).
	Usage Opt[UsageIn] `json:"usage"`
}

// Validate checks what the tags can't express.
func (in *LogActivitiesIn) Validate(faults *Faults) {
	planFaults(&in.Plan, faults)
	if !in.Activities.Set {
		if in.hasActivity() || in.logs() && !faults.Has("plan") && !faults.Has("usage") {
			in.validateAt("", faults)
		}
		return
	}
	if in.Message.Set {
		faults.Add("message", "Must not be sent beside activities.")
	}
	for i := range in.Activities.Value {
		in.Activities.Value[i].validateAt(fmt.Sprintf("activities[%d].", i), faults)
	}
}

// logs reports whether the request has activities. Without any it has a plan or usage.
func (in *LogActivitiesIn) logs() bool {
	return in.Activities.Set || !in.Plan.Set && !in.Usage.Set || in.hasActivity()
}

// hasActivity reports whether the body itself has fields of an activity.
func (in *LogActivitiesIn) hasActivity() bool {
	f := &in.ActivityFields
	return f.Message.Set || len(f.Payload) > 0 || f.ParentID.Set || f.StartedAt.Set || f.EndedAt.Set || f.DurationMs.Set
}

// LoggedActivities are the activities as they were stored.
type LoggedActivities struct {
	Activities []Activity `json:"activities"`
	// LeaseExpiresAt is the time when the lease ends unless it is renewed; null without
	// a lease.
	LeaseExpiresAt *Timestamp `json:"leaseExpiresAt"`
	// Budget is what the session may still use; null without a budget (Decision 67).
	Budget *LaneBudget `json:"budget"`
}

// LogActivities appends to a session's log, and renews its lease (Decision 36).
var LogActivities = NewCommand[LogActivitiesIn, LoggedActivities]("LogActivities", "Log what a session does", Needs{Write, "sessions"}, logActivities, ForLanes, Answers(Created))

func logActivities(tx *Tx, in *LogActivitiesIn) (Reply, error) {
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if c.s.Status.Ended() {
		return Reply{}, c.s.errEnded()
	}
	all := in.Activities.Value
	if !in.Activities.Set && in.logs() {
		all = []ActivityFields{in.ActivityFields}
	}
	if err := c.setPlan(&in.Plan); err != nil {
		return Reply{}, err
	}
	if err := c.use(&in.Usage); err != nil {
		return Reply{}, err
	}
	logged := LoggedActivities{Activities: make([]Activity, 0, len(all))}
	for i := range all {
		a := all[i].activity()
		if err := c.add(a); err != nil {
			return Reply{}, err
		}
		logged.Activities = append(logged.Activities, *a)
	}
	c.renew()
	if _, err := c.save(); err != nil {
		return Reply{}, err
	}
	logged.LeaseExpiresAt = c.s.Inner.Lease.expiry()
	left, now, err := tx.endOverspent(&c.s)
	if err != nil {
		return Reply{}, err
	}
	if logged.Budget = left; now != nil {
		logged.LeaseExpiresAt = now.Inner.Lease.expiry()
	}
	return jsonReply(Created, &logged)
}

// HeartbeatIn is a heartbeat of a session's holder.
type HeartbeatIn struct {
	ID SessionID `path:"id"`
	// LeaseSeconds is the length of the renewed lease; absent: as before.
	LeaseSeconds Opt[int64] `json:"leaseSeconds" rules:"min=10,max=3600"`
	// Usage is what was used since it was last told (Decision 67).
	Usage Opt[UsageIn] `json:"usage"`
}

// HeartbeatAnswer is the session's status and lease.
type HeartbeatAnswer struct {
	Status         SessionStatus `json:"status"`
	LeaseExpiresAt *Timestamp    `json:"leaseExpiresAt"`
	// Budget is what the session may still use; null without a budget (Decision 67).
	Budget *LaneBudget `json:"budget"`
}

// Heartbeat renews a session's lease and nothing else: it does not count as progress.
var Heartbeat = NewCommand[HeartbeatIn, HeartbeatAnswer]("Heartbeat", "Renew a session's lease", Needs{Write, "sessions"}, heartbeat, ForLanes, WithSpaceEffect(NeedsNoSpace), Refuses(CodeConflict))

func heartbeat(tx *Tx, in *HeartbeatIn) (Reply, error) {
	c, err := tx.sessionToChange(in.ID)
	if err != nil {
		return Reply{}, err
	}
	if c.s.Status.Ended() {
		return Reply{}, c.s.errEnded()
	}
	if l := c.s.Inner.Lease; l != nil {
		renewed := *l
		renewed.Seconds = in.LeaseSeconds.Or(l.Seconds)
		c.s.Inner.Lease = &renewed
		c.renew()
	}
	if err := c.use(&in.Usage); err != nil {
		return Reply{}, err
	}
	if l := c.s.Inner.Lease; l != nil || c.useLane() || in.Usage.Set {
		if _, err := c.save(); err != nil {
			return Reply{}, err
		}
	}
	answer := HeartbeatAnswer{Status: c.s.Status, LeaseExpiresAt: c.s.Inner.Lease.expiry()}
	var now *sessionRecord
	if answer.Budget, now, err = tx.endOverspent(&c.s); err != nil {
		return Reply{}, err
	}
	if now != nil {
		answer.Status, answer.LeaseExpiresAt = now.Status, now.Inner.Lease.expiry()
	}
	return jsonReply(Done, &answer)
}
