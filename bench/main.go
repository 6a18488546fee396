// Command bench runs the same workloads on perdure and on other engines, and prints tables with ratios. See README.md.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/perdure/perdure/bench/measure"
	"github.com/perdure/perdure/bench/peers"
	"github.com/perdure/perdure/bench/table"
	"github.com/perdure/perdure/bench/workload"
)

const base = "perdure"

// settings are the flags.
type settings struct {
	folder, peers, workloads string
	limit                    time.Duration
	strict, one              bool
}

func main() {
	var s settings
	flag.StringVar(&s.folder, "servers", "", "directory of the installed servers")
	flag.StringVar(&s.peers, "peers", peers.Names(), "peers to run, comma-separated")
	flag.StringVar(&s.workloads, "workloads", strings.Join(workload.Names(), ", "), "workloads to run, comma-separated")
	flag.DurationVar(&s.limit, "limit", 2*time.Minute, "time limit of a workload")
	flag.BoolVar(&s.strict, "strict", false, "exit with 1 if a peer fails")
	flag.BoolVar(&s.one, "one", false, "internal: run a workload in this process and write its result as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, s)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, s settings) int {
	chosen, err := choose(s)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if s.one {
		if err := json.NewEncoder(os.Stdout).Encode(runHere(ctx, s, chosen[0], s.workloads)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	results := all(ctx, s, chosen)
	describe(chosen)
	table.Write(os.Stdout, results, base)
	failed := slices.ContainsFunc(results, func(r table.Result) bool { return r.Err != "" })
	if ctx.Err() != nil || failed && s.strict {
		return 1
	}
	return 0
}

// choose returns the peers that the flags select, and an error for an unknown peer or workload.
func choose(s settings) (chosen []peers.Peer, err error) {
	known := peers.All()
	for _, name := range split(s.peers) {
		i := slices.IndexFunc(known, func(p peers.Peer) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-peers: unknown peer %q; choose from %s", name, peers.Names())
		}
		chosen = append(chosen, known[i])
	}
	for _, name := range split(s.workloads) {
		if !slices.Contains(workload.Names(), name) {
			known := strings.Join(workload.Names(), ", ")
			return nil, fmt.Errorf("-workloads: unknown workload %q; choose from %s", name, known)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("-peers: empty")
	}
	return chosen, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// all runs every workload on every peer. It finishes one workload on all peers before the next, so that compared runs
// are close in time.
func all(ctx context.Context, s settings, chosen []peers.Peer) (results []table.Result) {
	names := split(s.workloads)
	for i, name := range names {
		for j, p := range chosen {
			if ctx.Err() != nil {
				return results
			}
			fmt.Fprintf(os.Stderr, "[%d of %d] %s: %s", i*len(chosen)+j+1, len(names)*len(chosen), name, p.Name)
			began := time.Now()
			r := runInChild(ctx, s, p, name)
			fmt.Fprintf(os.Stderr, ", %.1f s", time.Since(began).Seconds())
			if r.Err != "" {
				fmt.Fprintf(os.Stderr, ": FAILED: %s", r.Err)
			}
			fmt.Fprintln(os.Stderr)
			results = append(results, r)
		}
	}
	return results
}

// endLimit limits the time that a process takes to stop its servers.
const endLimit = 15 * time.Second

// runInChild runs a workload in another process, with a separate store.
func runInChild(ctx context.Context, s settings, p peers.Peer, name string) table.Result {
	r := table.Result{Peer: p.Name, Workload: name, Server: p.Server, Cannot: p.Cannot[workload.KindOf(name)]}
	if r.Cannot != "" {
		return r
	}
	self, err := os.Executable()
	if err != nil {
		r.Err = err.Error()
		return r
	}
	args := []string{"-one", "-servers", s.folder, "-peers", p.Name, "-workloads", name, "-limit", s.limit.String()}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	// In a separate process group, it receives Ctrl-C once, from cmd.Cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := errors.Join(cmd.Run(), json.Unmarshal(out.Bytes(), &r)); err != nil {
		r.Err = fmt.Sprintf("%v: %s", err, strings.TrimSpace(stderr.String()))
	}
	return r
}

// runHere runs a workload in this process.
func runHere(ctx context.Context, s settings, p peers.Peer, name string) (r table.Result) {
	r = table.Result{Peer: p.Name, Workload: name, Server: p.Server}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("timed out after %v", s.limit))
	defer cancel()
	o, err := p.Open(ctx, s.folder)
	if err != nil {
		r.Err = err.Error()
		return r
	}
	defer func() {
		if err := o.Close(); err != nil && r.Err == "" {
			r.Err = err.Error()
		}
	}()
	ended := make(chan table.Result, 1)
	go func() { ended <- work(ctx, o, name, r) }()
	select {
	case r = <-ended:
	case <-ctx.Done(): // some clients ignore their context
		select {
		case r = <-ended:
		case <-time.After(time.Second):
			r.Err = context.Cause(ctx).Error()
		}
	}
	return r
}

// work runs the workload and adds the measurements to the result.
func work(ctx context.Context, o *peers.Opened, name string, r table.Result) table.Result {
	if err := workload.WarmUp(ctx, o); err != nil {
		r.Err = err.Error()
		return r
	}
	counted, ok := o.Engine.(workload.Counted)
	var callsBefore workload.Store
	if ok {
		callsBefore = counted.Store()
	}
	runtime.GC()
	before := measure.Read(o.Servers)
	var err error
	r.Outcome, err = workload.Run(ctx, o, name, workload.Full())
	r.Used = measure.Read(o.Servers).Since(before)
	if ok {
		now := counted.Store()
		r.Store = &workload.Store{Calls: now.Calls - callsBefore.Calls, Time: now.Time - callsBefore.Time}
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// describe prints the version and the setup of each peer, which readers need to interpret the ratios.
func describe(chosen []peers.Peer) {
	fmt.Printf("%s, %d processors, %s %s\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(),
		runtime.Version(), runtime.GOARCH)
	for _, p := range chosen {
		fmt.Printf("- %s (%s): %s.\n", p.Name, p.Version, p.Where)
	}
}
