//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart keeps the terminal's Ctrl-C from a process: it is for this program, which
// then stops its processes one after another.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
