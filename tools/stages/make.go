package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// resultsVariable is the variable with the place where `go test` writes its events: a prefix of file names.
	resultsVariable = "STAGE_RESULTS"
	tailLines       = 120
	slowestTests    = 10
	stopLimit       = 30 * time.Second
)

// runMake runs a stage's make target and writes its output to a log.
func runMake(ctx context.Context, module, logs string, s stage, reference time.Duration) result {
	r := result{stage: s, outcome: "ok"}
	path := filepath.Join(logs, s.Target+".log")
	log, err := os.Create(path) //nolint:gosec // in our own folder
	if err != nil {
		r.outcome, r.detail = "failed", err.Error()
		return r
	}
	defer func() { _ = log.Close() }() // what make wrote is there

	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", s.Target) //nolint:gosec // a target of this module
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, log, log
	cmd.Env = append(os.Environ(), resultsVariable+"="+filepath.Join(logs, s.Target))
	// Make removes incomplete files and stops its children when it is interrupted.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, stopLimit
	speed, began, before := calibrate(), time.Now(), readProcessorTime()
	err = cmd.Run()
	r.took, r.idle = time.Since(began), readProcessorTime().idleSince(before)
	r.slowdown = (speed + calibrate()).Seconds() / 2 / reference.Seconds()
	if cmd.ProcessState != nil {
		r.cpu = cmd.ProcessState.SystemTime() + cmd.ProcessState.UserTime()
	}
	if err != nil {
		r.outcome, r.detail = "failed", fmt.Sprintf("%v; the end of %s:\n%s", err, path, tail(path, tailLines))
	} else if excess := r.excess(); excess != "" {
		r.outcome = "over budget"
		r.detail = fmt.Sprintf("%s.\nMake the tests faster, or give the stage a larger budget in %s.\n%s",
			excess, planFile, slowest(logs, s.Target, slowestTests))
	}
	return r
}

// calibrating serializes calibrate: stages run side by side, and the processor time is that of the whole process.
var calibrating sync.Mutex

// calibrate measures the speed of this machine: the processor time of a fixed piece of work, the least of a few runs.
func calibrate() time.Duration {
	calibrating.Lock()
	defer calibrating.Unlock()
	least := time.Duration(1<<63 - 1)
	for range 3 {
		began := processTime()
		words := map[uint64]int{}
		for i, x := 0, uint64(1); i < 200_000; i++ {
			x ^= x << 13 //nolint:mnd // xorshift
			x ^= x >> 7  //nolint:mnd // xorshift
			x ^= x << 17 //nolint:mnd // xorshift
			words[x]++
		}
		least = min(least, processTime()-began)
	}
	return least
}

// processTime is the processor time of this process.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // never for RUSAGE_SELF
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// processorTime is how much time the machine's processors had, and how much of it they were idle.
type processorTime struct{ total, idle float64 }

// readProcessorTime reads /proc/stat. It returns nothing on systems other than Linux: durations have no budget there.
func readProcessorTime() processorTime {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}
	}
	first, _, _ := strings.Cut(string(b), "\n")
	var p processorTime
	for i, field := range strings.Fields(first) {
		var v float64
		if _, err := fmt.Sscan(field, &v); err != nil {
			continue // the word cpu
		}
		p.total += v
		if i == 4 || i == 5 { //nolint:mnd // idle and iowait, see proc_stat(5)
			p.idle += v
		}
	}
	return p
}

func (p processorTime) idleSince(before processorTime) float64 {
	if p.total <= before.total {
		return 0
	}
	return (p.idle - before.idle) / (p.total - before.total)
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path) //nolint:gosec // our own log
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
