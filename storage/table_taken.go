package storage

import "fmt"

// Taken reports whether there is a record with the primary key of v, or with one of its
// entries in a unique index. It is for records whose keys come from outside.
func (t *Table[T]) Taken(w Writer, v *T) (bool, error) {
	tx := w.Writer()
	tx.pk = t.Key(tx.pk[:0], v)
	there, err := tx.Has(t.ID, tx.pk)
	if err != nil || there {
		return there, err
	}
	e := &tx.entries
	e.begin(tx.prefix, tx.pk)
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if !ix.Unique {
			continue
		}
		e.index, e.unique, e.wide = ix.ID, true, ix.ShardWide
		ix.Entries(e, v)
	}
	for _, s := range e.spans {
		key := e.at(s)
		if there, err = tx.Has(TableID(key[prefixLen]), key[prefixLen+1:]); err != nil || there {
			if err != nil {
				err = fmt.Errorf("%s: look for an index entry: %w", t.Name, err)
			}
			return there, err
		}
	}
	return false, nil
}
