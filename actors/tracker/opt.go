package tracker

// Opt is a field of a body that may be absent. A nullable field may also be null; the
// binder refuses null for the others.
type Opt[T any] struct {
	Set   bool
	Null  bool
	Value T
}

// Some returns a field that is present.
func Some[T any](v T) Opt[T] { return Opt[T]{Set: true, Value: v} }

// Or returns the value, or other if the field is absent or null.
func (o Opt[T]) Or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.Value
}

// Ptr returns a pointer to the value, or nil if the field is absent or null.
func (o Opt[T]) Ptr() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}
