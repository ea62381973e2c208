package tracker

// Opt is a field of a body that may be absent. Null is told apart from a value
// where the field is nullable; elsewhere null is refused by the binder.
type Opt[T any] struct {
	Set   bool
	Null  bool
	Value T
}

// Some is a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{Set: true, Value: v} }

// Or gives the value, or other when it is absent or null.
func (o Opt[T]) Or(other T) T {
	if !o.Set || o.Null {
		return other
	}
	return o.Value
}

// Ptr gives the value, nil when it is absent or null.
func (o Opt[T]) Ptr() *T {
	if !o.Set || o.Null {
		return nil
	}
	return &o.Value
}
