package tracker

import "slices"

// Enumerated is a named text with a fixed list of values. A field of such a type takes
// and shows these values, unless its enum tag names others.
type Enumerated interface {
	EnumValues() []string
}

// enumTexts gives the values of an enumerated type as the API description has them.
func enumTexts[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return texts
}

// rankOf is the place of a value in the list of its type; 0xff for a value that is not
// in the list. Ranks are bytes of index keys, so the order of such a list is part of the
// format on disk.
func rankOf[T comparable](values []T, value T) byte {
	return byte(slices.Index(values, value))
}
