package main

import (
	"os"
	"strconv"
	"syscall"
)

// lowPriority is the nice value of a command that may take its time beside a node on the same machine.
const lowPriority = 10

// lowerPriority has the kernel carry out other programs first, as nice(1) does. Linux keeps a priority for each
// thread, and a new thread has that of the thread that makes it. What fails is left as it is: the command works
// at any priority.
func lowerPriority() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		// The system call gives 20 less the nice value.
		if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, id); err == nil && 20-now < lowPriority {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, lowPriority)
		}
	}
}
