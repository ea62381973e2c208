package tracker

import (
	"fmt"

	"switchyard/storage"
)

func checkUsageEntry(_ *storage.View, fields, value []byte) error {
	if len(fields) != 8+16 {
		return fmt.Errorf("%w: usage entry with %d bytes of key", storage.ErrFormat, len(fields))
	}
	_, _, err := parseUsageEntry(value)
	return err
}

func checkUsageDay(_ *storage.View, fields, value []byte) error {
	_, _, _, err := parseUsageDay(fields, value)
	return err
}

func checkUsageSum(_ *storage.View, fields, value []byte) error {
	if len(fields) < 1+1+4 || usageSumKind(fields[0]) > usageOfModel {
		return fmt.Errorf("%w: sum of usage with %d bytes of key", storage.ErrFormat, len(fields))
	}
	_, rest, err := parseUsage(value)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: sum of usage of %d bytes", storage.ErrFormat, len(value))
	}
	return err
}

// checkUsage checks that the sums of usage are those of its days, and the days those of
// what was reported. A deleted issue has no sums.
func checkUsage(v *storage.View, report reporter) error {
	days, sums := map[string]Usage{}, map[string]Usage{}
	add := func(to map[string]Usage, key storage.Key, u Usage) {
		sum := to[string(key)]
		sum.add(&u)
		to[string(key)] = sum
	}
	err := v.Rows(usageEntryTable, nil, nil, func(fields, value []byte) (bool, error) {
		o, u, err := parseUsageEntry(value)
		if err != nil || len(fields) != 8+16 {
			return true, nil // the row's own check reports it
		}
		at := timeOfMillis(fields)
		add(days, o.dayKey(dayOf(at)), u)
		for _, month := range [...]uint32{0, monthOf(at)} {
			for _, sum := range o.sums() {
				add(sums, usageSumKey(sum.kind, sum.group, month), u)
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	for table, want := range map[storage.TableID]map[string]Usage{usageDayTable: days, usageSumTable: sums} {
		err := v.Rows(table, nil, nil, func(fields, value []byte) (bool, error) {
			got, _, err := parseUsage(value)
			if err == nil && got != want[string(fields)] {
				report("usage", fields, "says %+v, what was reported is %+v", got, want[string(fields)])
			}
			delete(want, string(fields))
			return true, nil
		})
		if err != nil {
			return err
		}
		for key := range want {
			if table == usageSumTable && usageSumKind(key[0]) == usageOfIssue {
				continue // its issue was deleted
			}
			report("usage", []byte(key), "there is no sum of what was reported")
		}
	}
	return nil
}
