package top

// key is a key that the screen knows.
type key int

const (
	keyNone key = iota
	keyQuit
	keyTab
	keyUp
	keyDown
	keyLeft
	keyRight
)

// keyReader finds the keys in the bytes of a terminal. An arrow is three bytes, which may
// come in several reads.
type keyReader struct{ escape []byte }

// next takes a byte and returns the key that it completes.
func (k *keyReader) next(b byte) key {
	switch {
	case b == 0x1b:
		k.escape = append(k.escape[:0], b)
		return keyNone
	case len(k.escape) == 1 && (b == '[' || b == 'O'):
		k.escape = append(k.escape, b)
		return keyNone
	case len(k.escape) == 2:
		if b >= 0x20 && b < 0x40 { // a parameter of a longer sequence
			return keyNone
		}
		k.escape = k.escape[:0]
		return map[byte]key{'A': keyUp, 'B': keyDown, 'C': keyRight, 'D': keyLeft, 'Z': keyTab}[b]
	}
	k.escape = k.escape[:0]
	switch b {
	case 'q', 'Q', 0x03, 0x04: // Ctrl-C and Ctrl-D come as bytes
		return keyQuit
	case '\t':
		return keyTab
	}
	return keyNone
}

// press changes the order of the tables. It reports false for the key that ends it all.
func (s *screen) press(k key) (goesOn bool) {
	by, columns := &s.orders[s.active], len(nodeColumns)
	if s.active == workspacesTable {
		columns = len(workspaceColumns)
	}
	switch k {
	case keyQuit:
		return false
	case keyTab:
		s.active = (s.active + 1) % tables
	case keyLeft:
		by.column = (by.column + columns - 1) % columns
	case keyRight:
		by.column = (by.column + 1) % columns
	case keyUp:
		by.down = false
	case keyDown:
		by.down = true
	case keyNone:
	}
	return true
}
