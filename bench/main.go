// Command bench runs the same workloads over this engine and over others, side by side, and prints ratios. See README.md.
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
	flag.StringVar(&s.folder, "servers", "", "the folder into which the peers' servers were installed")
	flag.StringVar(&s.peers, "peers", peers.Names(), "the peers to run, with commas")
	flag.StringVar(&s.workloads, "workloads", strings.Join(workload.Names(), ", "), "the workloads to run, with commas")
	flag.DurationVar(&s.limit, "limit", 2*time.Minute, "give a workload up after this long")
	flag.BoolVar(&s.strict, "strict", false, "exit with 1 where a peer has failed")
	flag.BoolVar(&s.one, "one", false, "internal: run one workload of one peer in this process, and write its result as JSON")
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
		if err := json.NewEncoder(os.Stdout).Encode(measured(ctx, s, chosen[0], s.workloads)); err != nil {
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

// choose finds what the flags name.
func choose(s settings) (chosen []peers.Peer, err error) {
	known := peers.All()
	for _, name := range split(s.peers) {
		i := slices.IndexFunc(known, func(p peers.Peer) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-peers: no peer is called %q: they are %s", name, peers.Names())
		}
		chosen = append(chosen, known[i])
	}
	for _, name := range split(s.workloads) {
		if !slices.Contains(workload.Names(), name) {
			return nil, fmt.Errorf("-workloads: no workload is called %q: they are %s", name, strings.Join(workload.Names(), ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("-peers: none is named")
	}
	return chosen, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// all runs every workload on every peer, a workload at a time, so that what is compared runs within the same minutes.
func all(ctx context.Context, s settings, chosen []peers.Peer) (results []table.Result) {
	names := split(s.workloads)
	for i, name := range names {
		for j, p := range chosen {
			if ctx.Err() != nil {
				return results
			}
			fmt.Fprintf(os.Stderr, "[%d of %d] %s: %s", i*len(chosen)+j+1, len(names)*len(chosen), name, p.Name)
			began := time.Now()
			r := apart(ctx, s, p, name)
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

// endLimit is how long a process may take to stop its servers.
const endLimit = 15 * time.Second

// apart runs a workload in a process of its own, with a store of its own.
func apart(ctx context.Context, s settings, p peers.Peer, name string) table.Result {
	r := table.Result{Peer: p.Name, Workload: name, Server: p.Server, Cannot: p.Cannot[workload.KindOf(name)]}
	if r.Cannot != "" {
		return r
	}
	self, err := os.Executable()
	if err != nil {
		r.Err = err.Error()
		return r
	}
	cmd := exec.CommandContext(ctx, self, "-one", "-servers", s.folder, "-peers", p.Name, "-workloads", name, "-limit", s.limit.String()) //nolint:gosec // ourselves
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endLimit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM} // a Ctrl-C reaches it once, from here
	if err := errors.Join(cmd.Run(), json.Unmarshal(out.Bytes(), &r)); err != nil {
		r.Err = fmt.Sprintf("%v: %s", err, strings.TrimSpace(complaints.String()))
	}
	return r
}

// measured runs a workload here.
func measured(ctx context.Context, s settings, p peers.Peer, name string) (r table.Result) {
	r = table.Result{Peer: p.Name, Workload: name, Server: p.Server}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit, fmt.Errorf("given up after %v", s.limit))
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
	case <-ctx.Done(): // some engines' clients do not heed a context
		select {
		case r = <-ended:
		case <-time.After(time.Second):
			r.Err = context.Cause(ctx).Error()
		}
	}
	return r
}

// work runs the workload, and adds what was measured to the result.
func work(ctx context.Context, o *peers.Opened, name string, r table.Result) table.Result {
	if err := workload.WarmUp(ctx, o); err != nil {
		r.Err = err.Error()
		return r
	}
	counted, ok := o.Engine.(workload.Counted)
	var asked workload.Store
	if ok {
		asked = counted.Store()
	}
	runtime.GC()
	before := measure.Read(o.Servers)
	var err error
	r.Outcome, err = workload.Run(ctx, o, name, workload.Full())
	r.Used = measure.Read(o.Servers).Since(before)
	if ok {
		now := counted.Store()
		r.Store = &workload.Store{Calls: now.Calls - asked.Calls, Time: now.Time - asked.Time}
	}
	if err != nil {
		r.Err = err.Error()
	}
	return r
}

// describe says what each peer is and where it runs: no ratio means anything without that.
func describe(chosen []peers.Peer) {
	fmt.Printf("%s, %d processors, %s %s\n\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), runtime.GOARCH)
	for _, p := range chosen {
		fmt.Printf("- %s (%s): %s.\n", p.Name, p.Version, p.Where)
	}
}
