package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// CheckStream reads the stream of an Export to its end, and returns ErrStream unless it is a
// whole and undamaged one of the shard. It opens no table: Import proves what is in them.
func CheckStream(r io.Reader, shard Shard) error {
	var head [streamHeaderLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return cutStream(err)
	}
	sections, err := parseStreamHeader(head[:], shard)
	if err != nil {
		return err
	}
	sum := xxhash.New()
	for n := range sections {
		if _, err := io.ReadFull(r, head[:sectionHeaderLen]); err != nil {
			return cutStream(err)
		}
		size, due := binary.BigEndian.Uint64(head[:]), binary.BigEndian.Uint64(head[8:])
		if size == 0 || size > maxSectionBytes {
			return fmt.Errorf("%w: a section of %d bytes", ErrStream, size)
		}
		sum.Reset()
		if _, err := io.CopyN(sum, r, int64(size)); err != nil {
			return cutStream(err)
		}
		if sum.Sum64() != due {
			return fmt.Errorf("%w: section %d is damaged", ErrStream, n)
		}
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n > 0 {
		return errors.Join(err, fmt.Errorf("%w: it goes on behind its end", ErrStream))
	}
	return nil
}

func cutStream(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it ends early", ErrStream)
	}
	return fmt.Errorf("read a stream: %w", err)
}
