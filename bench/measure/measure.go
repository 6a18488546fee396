// Package measure reads the CPU time and memory use of this process and its servers. It requires Linux, for /proc.
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

// Usage is the use of resources so far.
type Usage struct {
	// Self is the CPU time of this process, Servers that of the servers and their children, Machine that of all
	// processes.
	Self    time.Duration `json:"self"`
	Servers time.Duration `json:"servers"`
	Machine time.Duration `json:"machine"`
	// Allocs and Bytes count the allocations of this process.
	Allocs uint64 `json:"allocs"`
	Bytes  uint64 `json:"bytes"`
}

// Read returns the usage of this process and of the servers with these process IDs.
func Read(servers []int) Usage {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails only for an invalid argument
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u := Usage{
		Self: time.Duration(r.Utime.Nano() + r.Stime.Nano()), Machine: machine(), Allocs: m.Mallocs,
		Bytes: m.TotalAlloc,
	}
	for _, pid := range family(servers) {
		u.Servers += process(pid)
	}
	return u
}

// Since returns the usage since an earlier reading.
func (u Usage) Since(before Usage) Usage {
	return Usage{
		Self: u.Self - before.Self, Servers: u.Servers - before.Servers, Machine: u.Machine - before.Machine,
		Allocs: u.Allocs - before.Allocs, Bytes: u.Bytes - before.Bytes,
	}
}

// Foreign returns the share of the machine's CPU time that other programs used in the given time.
func (u Usage) Foreign(wall time.Duration) float64 {
	if wall <= 0 {
		return 0
	}
	return max(0, float64(u.Machine-u.Self-u.Servers)/(float64(wall)*float64(runtime.NumCPU())))
}

const tick = 10 * time.Millisecond // USER_HZ of Linux is 100; see proc(5)

// machine returns the busy time of all CPUs: the first line of /proc/stat without idle, iowait and guest times.
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

// stat returns the fields of /proc/<pid>/stat from the third one (the state), or nil if the process has ended.
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

// process returns the CPU time of a process and of the children that it has reaped.
func process(pid int) (sum time.Duration) {
	if f := stat(pid); f != nil {
		for _, field := range f[11:15] {
			sum += ticks(field)
		}
	}
	return sum
}

// family returns the processes and their descendants.
func family(roots []int) (all []int) {
	if len(roots) == 0 {
		return nil
	}
	parents := map[int]int{}
	folders, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
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
