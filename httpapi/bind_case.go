package httpapi

import "strings"

// The names of attributes in bodies of SCIM have no case (RFC 7643, section 2.1).

// foldNames takes the names of an object, and of all objects in it, in any case.
func (o *object) foldNames() {
	o.anyCase = true
	for _, f := range o.fields {
		for s := &f.fieldSchema; s != nil; s = s.items {
			if s.object != nil {
				s.object.foldNames()
			}
		}
	}
}

// field returns the field with a name, or nil.
func (o *object) field(name []byte) *field {
	if f := o.byName[string(name)]; f != nil || !o.anyCase {
		return f
	}
	for _, f := range o.fields {
		if strings.EqualFold(f.name, string(name)) {
			return f
		}
	}
	return nil
}

// repeated notes that the property being read is given again. The decoder finds a name that is
// repeated as it is written, but not one in another case.
func (b *binder) repeated() {
	if !b.faults.Has(b.path()) {
		b.fault(again)
	}
}
