package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Flags are facts of a record that decide about its visibility, readable without decoding the
// record. The table's owner defines the bits.
type Flags uint8

// Header is the part of a record in front of its JSON.
type Header struct {
	Flags Flags
	// Version counts the writes of this record from 1; it makes the ETag.
	Version uint64
	// Team is the team whose visibility governs the record; zero when none does.
	Team ID
	// ReferredBy is the number of a plain row that has this record's JSON as a reference, so that
	// it need not be stored twice; 0 when there is none. The table's owner defines which row that
	// is, and completes it before the record is written again. FormatReferences brought it.
	ReferredBy uint64
}

// Layout of a record: format (1 byte), flags (1), version (8, big endian), team (16),
// in a referred record ReferredBy (8), then the JSON.
const (
	recordFormat   = 1
	referredFormat = 2

	headerLen   = 1 + 1 + 8 + 16
	referredLen = headerLen + 8
)

// ErrFormat is returned for stored bytes this build can't read.
var ErrFormat = errors.New("storage: record of an unknown format")

// Record is a stored value: header and JSON. It aliases Pebble's memory unless
// it was cloned.
type Record []byte

// AppendHeader starts a record that is encoded by hand; its JSON goes behind.
func AppendHeader(b []byte, h Header) []byte {
	format := byte(recordFormat)
	if h.ReferredBy != 0 {
		format = referredFormat
	}
	b = append(b, format, byte(h.Flags))
	b = binary.BigEndian.AppendUint64(b, h.Version)
	b = append(b, h.Team[:]...)
	if h.ReferredBy != 0 {
		b = binary.BigEndian.AppendUint64(b, h.ReferredBy)
	}
	return b
}

// ParseRecord reads a stored value; it aliases b.
func ParseRecord(b []byte) (Record, error) {
	if len(b) < headerLen || b[0] != recordFormat && (b[0] != referredFormat || len(b) < referredLen) {
		return nil, fmt.Errorf("%w (%d bytes)", ErrFormat, len(b))
	}
	return Record(b), nil
}

// Flags of the record.
func (r Record) Flags() Flags { return Flags(r[1]) }

// Version counts the writes of this record from 1.
func (r Record) Version() uint64 { return binary.BigEndian.Uint64(r[2:]) }

// Team whose visibility governs the record.
func (r Record) Team() (id ID) { copy(id[:], r[10:]); return id }

// JSON is the record as a client gets it.
func (r Record) JSON() []byte {
	if r[0] == referredFormat {
		return r[referredLen:]
	}
	return r[headerLen:]
}

// ReferredBy is the number of the row that refers to the record; 0 when none does.
func (r Record) ReferredBy() uint64 {
	if r[0] != referredFormat {
		return 0
	}
	return binary.BigEndian.Uint64(r[headerLen:])
}

// Header of the record.
func (r Record) Header() Header {
	return Header{Flags: r.Flags(), Version: r.Version(), Team: r.Team(), ReferredBy: r.ReferredBy()}
}
