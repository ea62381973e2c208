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
}

// Layout of a record, version 1: format (1 byte), flags (1), version (8, big
// endian), team (16), then the JSON.
const (
	recordFormat = 1
	headerLen    = 1 + 1 + 8 + 16
)

// ErrFormat is returned for stored bytes this build can't read.
var ErrFormat = errors.New("storage: record of an unknown format")

// Record is a stored value: header and JSON. It aliases Pebble's memory unless
// it was cloned.
type Record []byte

// AppendHeader starts a record that is encoded by hand; its JSON goes behind.
func AppendHeader(b []byte, h Header) []byte {
	b = append(b, recordFormat, byte(h.Flags))
	b = binary.BigEndian.AppendUint64(b, h.Version)
	return append(b, h.Team[:]...)
}

// ParseRecord reads a stored value; it aliases b.
func ParseRecord(b []byte) (Record, error) {
	if len(b) < headerLen || b[0] != recordFormat {
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
func (r Record) JSON() []byte { return r[headerLen:] }

// Header of the record.
func (r Record) Header() Header {
	return Header{Flags: r.Flags(), Version: r.Version(), Team: r.Team()}
}
