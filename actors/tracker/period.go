package tracker

// PeriodFields say from when to when something is planned. An absent one is left as
// it is; null clears.
type PeriodFields struct {
	StartsAt Opt[string] `json:"startsAt" rules:"nullable,datetime"`
	EndsAt   Opt[string] `json:"endsAt" rules:"nullable,datetime"`
}

// Validate looks at what the tags can't say. Whether what is given fits what is
// stored shows in apply.
func (f *PeriodFields) Validate(faults *Faults) {
	momentFault("startsAt", &f.StartsAt, faults)
	momentFault("endsAt", &f.EndsAt, faults)
	if backwards(snooze(f.StartsAt.Ptr()), snooze(f.EndsAt.Ptr())) {
		faults.Add("endsAt", endsEarly)
	}
}

const endsEarly = "Must not be before startsAt."

// backwards tells whether a period would end before it starts; timestamps compare
// like moments.
func backwards(startsAt, endsAt *Timestamp) bool {
	return startsAt != nil && endsAt != nil && *endsAt < *startsAt
}

// momentFault tells of a date and time that no timestamp can stand for.
func momentFault(path string, given *Opt[string], faults *Faults) {
	if at := given.Ptr(); at != nil && !faults.Has(path) && snooze(at) == nil {
		faults.Add(path, "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
}

// apply writes what is given into a record's period, unless that would end before
// it starts.
func (f *PeriodFields) apply(startsAt, endsAt **Timestamp) error {
	if f.StartsAt.Set {
		*startsAt = snooze(f.StartsAt.Ptr())
	}
	if f.EndsAt.Set {
		*endsAt = snooze(f.EndsAt.Ptr())
	}
	switch {
	case !backwards(*startsAt, *endsAt):
		return nil
	case f.EndsAt.Set:
		return BadRequest(Fault{Path: "endsAt", Message: endsEarly})
	}
	return BadRequest(Fault{Path: "startsAt", Message: "Must not be after endsAt."})
}
