package resident

import (
	"bufio"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// Pages of the program's file leave the process's memory, and come back as they were.
func TestRelease(t *testing.T) {
	parts, err := programParts()
	if err != nil || len(parts) == 0 {
		t.Fatalf("%v, %v; want parts of the program's file", parts, err)
	}
	touched := touch(t, parts)
	before := fileBytes(t)
	Release()
	// The test itself brings much of so small a program back.
	if after := fileBytes(t); after > before-touched/8 {
		t.Errorf("%d bytes of files are in memory, before %d, of which %d are the program's", after, before, touched)
	}
	if again := touch(t, parts); again != touched {
		t.Errorf("%d bytes of the program, before %d", again, touched)
	}
}

// touch brings all pages of the parts into the process's memory, and returns how many bytes they have.
func touch(t *testing.T, parts []mapping) (size uint64) {
	t.Helper()
	for _, p := range parts {
		size += uint64(p.end - p.start)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	page := make([]byte, 1)
	for _, p := range parts {
		for at := p.start; at < p.end; at += 4096 {
			if _, err := memory.ReadAt(page, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return size
}

// fileBytes returns how many bytes of the process's memory are pages of files.
func fileBytes(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseUint(kib, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

func TestPartsOf(t *testing.T) {
	const (
		code     = "00400000-01c8d000 r-xp 00000000 fe:00 9986088                            /opt/a b\nSize: 25140 kB\nAnonymous:             0 kB\nVmFlags: rd ex mr mw me\n"
		constant = "01c8d000-03741000 r--p 0188d000 fe:00 9986088                            /opt/a b\nSize: 27344 kB\nAnonymous:             0 kB\n"
		data     = "03741000-03862000 rw-p 03341000 fe:00 9986088                            /opt/a b\nSize: 1156 kB\nAnonymous:             0 kB\n"
		moved    = "03862000-03863000 r--p 03462000 fe:00 9986088                            /opt/a b\nSize: 4 kB\nAnonymous:             4 kB\n"
		shared   = "03863000-03864000 r--s 03463000 fe:00 9986088                            /opt/a b\nSize: 4 kB\nAnonymous:             0 kB\n"
		other    = "03864000-03865000 r-xp 00000000 fe:00 4711                               /opt/a\nSize: 4 kB\nAnonymous:             0 kB\n"
		heap     = "c000000000-c001800000 rw-p 00000000 00:00 0 \nSize: 24576 kB\nAnonymous:         21664 kB\n"
	)
	parts, err := partsOf(bufio.NewScanner(strings.NewReader(moved+code+constant+data+shared+other+heap)), []byte("/opt/a b"))
	if want := []mapping{{0x400000, 0x1c8d000}, {0x1c8d000, 0x3741000}}; err != nil || !reflect.DeepEqual(parts, want) {
		t.Errorf("%x, %v; want %x", parts, err, want)
	}
	for _, text := range []string{"", "\n", "Anonymous: 0 kB\n", "x-y r-xp 0 0 0 /opt/a b\n", "2-1 r-xp 0 0 0 /opt/a b\nAnonymous: 0 kB\n", "1-2 r-xp\nAnonymous: 0 kB\n"} {
		if parts, err := partsOf(bufio.NewScanner(strings.NewReader(text)), []byte("/opt/a b")); err != nil || parts != nil {
			t.Errorf("%q: %x, %v; want none", text, parts, err)
		}
	}
}
