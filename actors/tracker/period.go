package tracker

// PeriodFields are the planned start and end of a record. An absent one is left as it
// is; null clears it.
type PeriodFields struct {
	StartsAt Opt[string] `json:"startsAt" rules:"nullable,datetime"`
	EndsAt   Opt[string] `json:"endsAt" rules:"nullable,datetime"`
}

// Validate checks what the tags can't express. apply checks the period together with
// the stored values.
func (f *PeriodFields) Validate(faults *Faults) {
	momentFault("startsAt", &f.StartsAt, faults)
	momentFault("endsAt", &f.EndsAt, faults)
	if backwards(snooze(f.StartsAt.Ptr()), snooze(f.EndsAt.Ptr())) {
		faults.Add("endsAt", endsEarly)
	}
}

const endsEarly = "Must not be before startsAt."

// backwards reports whether a period would end before it starts; timestamps compare in
// the order of time.
func backwards(startsAt, endsAt *Timestamp) bool {
	return startsAt != nil && endsAt != nil && *endsAt < *startsAt
}

// momentFault adds a fault for a date and time that a timestamp can't represent.
func momentFault(path string, given *Opt[string], faults *Faults) {
	if at := given.Ptr(); at != nil && !faults.Has(path) && snooze(at) == nil {
		faults.Add(path, "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
}

// apply sets the given fields in a record's period, or returns an error if it would end
// before it starts.
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
