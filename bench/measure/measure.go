// Package measure reads what this process and its servers have used, from /proc: it is for Linux.
package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is what has been used so far.
type Usage struct {
	// Self is the processor time of this process, Servers that of the servers and their children, Machine that of everybody.
	Self    time.Duration `json:"self"`
	Servers time.Duration `json:"servers"`
	Machine time.Duration `json:"machine"`
	// Allocs and Bytes are what this process has allocated.
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"bytes"`
}

// Read reads it. servers are process ids.
func Read(servers []int) Usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it fails on a wrong argument alone
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{Self: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Machine: machine(), Allocs: m.Mallocs, Bytes: m.TotalAlloc}
	for _, pid := range family(servers) {
		u.Servers += process(pid)
	}
	return u
}

// Since is what was used after an earlier reading.
func (u Usage) Since(before Usage) Usage {
	return Usage{
		Self: u.Self - before.Self, Servers: u.Servers - before.Servers, Machine: u.Machine - before.Machine,
		Allocs: u.Allocs - before.Allocs, Bytes: u.Bytes - before.Bytes,
	}
}

// Foreign is the share of the machine that other programs have used in a span of time.
func (u Usage) Foreign(wall time.Duration) float64 {
	if wall <= 0 {
		return 0
	}
	return max(0, float64(u.Machine-u.Self-u.Servers)/(float64(wall)*float64(runtime.NumCPU())))
}

const tick = 10 * time.Millisecond // Linux counts in hundredths of a second for programs (USER_HZ, proc(5))

// machine is the time that the processors have spent other than idle: the first line of /proc/stat, less idle, iowait and guests.
func machine() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var busy time.Duration
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i >= 9 {
			continue
		}
		busy += ticks(field)
	}
	return busy
}

func ticks(field string) time.Duration {
	n, err := strconv.ParseInt(field, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * tick
}

// stat is /proc/<pid>/stat from the third field on, the state; nil for a process that is gone.
func stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	s := string(b)
	if f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:]); len(f) >= 15 {
		return f
	}
	return nil
}

// process is the time of a process and of the children that it has reaped.
func process(pid int) (sum time.Duration) {
	if f := stat(pid); f != nil {
		for _, field := range f[11:15] {
			sum += ticks(field)
		}
	}
	return sum
}

// family are the processes and their descendants.
func family(roots []int) (all []int) {
	if len(roots) == 0 {
		return nil
	}
	parents := map[int]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is a good one
	for _, folder := range folders {
		pid, _ := strconv.Atoi(filepath.Base(folder))
		if f := stat(pid); f != nil {
			parents[pid], _ = strconv.Atoi(f[1])
		}
	}
	for pid := range parents {
		for p := pid; p > 1; p = parents[p] {
			if slices.Contains(roots, p) {
				all = append(all, pid)
				break
			}
		}
	}
	return all
}
