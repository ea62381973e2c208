package storage

import "encoding/binary"

// Doc is the number by which postings name a listed record: the time and count of its id, the 60
// bits before the random ones. Docs are unique within a workspace and grow in the order of
// creation.
type Doc uint64

// DocOf returns the Doc of a UUIDv7 made by the workspace.
func DocOf(id ID) Doc {
	head := binary.BigEndian.Uint64(id[:])
	return Doc(head>>16<<12 | head&0xfff)
}

// PutOldest makes id the first that has this Doc.
func (d Doc) PutOldest(id *ID) {
	*id = ID{}
	binary.BigEndian.PutUint64(id[:], uint64(d)>>12<<16|0x7000|uint64(d)&0xfff)
}

// DocOfKey returns the Doc of a primary key made by Key.DescID.
func DocOfKey(pk []byte) Doc {
	head := ^binary.BigEndian.Uint64(pk)
	return Doc(head>>16<<12 | head&0xfff)
}

// DocKeyLen is the number of bytes at the beginning of an id, or of a primary key made from one, that the
// Doc is made of.
const DocKeyLen = 8

// DocKey is the first DocKeyLen bytes of the primary key, made by Key.DescID, that a
// doc's record has.
func DocKey(k Key, d Doc) Key {
	return binary.BigEndian.AppendUint64(k, ^(uint64(d)>>12<<16 | 0x7000 | uint64(d)&0xfff))
}
