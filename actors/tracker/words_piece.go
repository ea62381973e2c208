package tracker

const (
	// textPiece is the size in bytes from which on a text is looked through in pieces.
	textPiece = 16 << 10
	// textPerRow is the number of bytes of text whose words take about as long as a row of a walk.
	textPerRow = 64
)

// eachPiece calls fn with a text, a piece at a time if it is long, until fn returns false. The pieces have the
// words of the text. The work of fn is counted, so that the query can be ended in the middle of a text.
func (v *View) eachPiece(text string, fn func(piece string) (more bool)) error {
	for text != "" {
		end := pieceEnd(text)
		if !fn(text[:end]) {
			return nil
		}
		if err := v.Work(end / textPerRow); err != nil {
			return err
		}
		text = text[end:]
	}
	return nil
}

// pieceEnd returns the end of the first piece of a text: in front of an ASCII character that is in no word. A character of
// ASCII is not changed by what is before it, so the words are the same as without a break. A text without such a character is
// one piece.
func pieceEnd(text string) int {
	for i := textPiece; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 0x80, 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		default:
			return i
		}
	}
	return len(text)
}
