package resident

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// mapping is a part of the process's memory, from start up to, and without, end.
type mapping struct{ start, end uintptr }

// releaseProgram takes the pages of the program's file out of the process's memory. Memory
// that differs from the file stays, because the file could not bring it back.
func releaseProgram() {
	parts, err := programParts()
	if err != nil {
		return // no /proc: nothing depends on it
	}
	for _, p := range parts {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, p.start, p.end-p.start, syscall.MADV_DONTNEED)
	}
}

// programParts finds the parts of the process's memory that are the same as in the
// program's file: those that can't be written to, and of which nothing is the process's own
// (as after relocations, or with a debugger's breakpoints).
func programParts() (parts []mapping, err error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, err
	}
	defer smaps.Close() //nolint:errcheck // it was only read
	return partsOf(bufio.NewScanner(smaps), []byte(program))
}

// partsOf reads the format of /proc/PID/smaps, see proc_pid_smaps(5): a line of each
// mapping, then lines with its sizes.
func partsOf(smaps *bufio.Scanner, program []byte) (parts []mapping, err error) {
	var of mapping
	found := false // of is a part, unless something of it is the process's own
	for smaps.Scan() {
		line := smaps.Bytes()
		if size, is := bytes.CutPrefix(line, []byte("Anonymous:")); is {
			if found && bytes.Equal(bytes.TrimSpace(size), []byte("0 kB")) {
				parts = append(parts, of)
			}
			found = false
			continue
		}
		if m, mode, name, is := parseMapping(line); is {
			of, found = m, len(mode) == 4 && mode[1] != 'w' && mode[3] == 'p' && bytes.Equal(name, program)
		}
	}
	return parts, smaps.Err()
}

// parseMapping parses the first line of a mapping. The name may have spaces.
//
//	00400000-01c8d000 r-xp 00000000 fe:00 9986088     /usr/bin/switchyard
func parseMapping(line []byte) (m mapping, mode, name []byte, is bool) {
	var fields [5][]byte
	for i := range fields {
		if fields[i], line, is = bytes.Cut(line, []byte(" ")); !is {
			return m, nil, nil, false
		}
	}
	from, to, _ := bytes.Cut(fields[0], []byte("-"))
	start, err := strconv.ParseUint(string(from), 16, strconv.IntSize)
	if err != nil {
		return m, nil, nil, false
	}
	end, err := strconv.ParseUint(string(to), 16, strconv.IntSize)
	if err != nil || end < start {
		return m, nil, nil, false
	}
	return mapping{uintptr(start), uintptr(end)}, fields[1], bytes.TrimSpace(line), true
}
