package storage

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Cursor moves over the plain rows of a table, back and forth. It sees the moment at
// which it was opened, and is used by one goroutine at a time.
type Cursor struct {
	it   *pebble.Iterator
	key  []byte
	skip int
}

// Cursor opens a cursor, to be closed.
func (v *View) Cursor(table TableID) (*Cursor, error) {
	it, skip, err := v.iterate(table, nil)
	if err != nil {
		return nil, err
	}
	key := append(make([]byte, 0, 96), v.fullKey(table, nil)...)
	return &Cursor{it: it, key: key, skip: skip}, nil
}

// SeekGE moves to the first row not before fields; false when there is none.
func (c *Cursor) SeekGE(fields []byte) bool {
	c.key = append(c.key[:c.skip], fields...)
	return c.it.SeekGE(c.key)
}

// SeekLT moves to the last row before fields; false when there is none.
func (c *Cursor) SeekLT(fields []byte) bool {
	c.key = append(c.key[:c.skip], fields...)
	return c.it.SeekLT(c.key)
}

// Next moves to the next row; false when there is none.
func (c *Cursor) Next() bool { return c.it.Next() }

// Fields of the row, valid until the cursor moves.
func (c *Cursor) Fields() []byte { return c.it.Key()[c.skip:] }

// Value of the row, valid until the cursor moves.
func (c *Cursor) Value() ([]byte, error) {
	value, err := c.it.ValueAndErr()
	if err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	return value, nil
}

// Err tells why a move found nothing; nil when there was nothing.
func (c *Cursor) Err() error {
	if err := c.it.Error(); err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	return nil
}

// Close ends the cursor.
func (c *Cursor) Close() error { return c.it.Close() }
