package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// defaultWorker is where a project has its worker function.
const defaultWorker = "./functions/worker"

// workerPatience is longer than a worker takes to finish what it has begun; then it is killed.
const workerPatience = 45 * time.Second

func (c *command) workerVerb() *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use: "worker [PACKAGE-OR-BINARY...]", Short: "Serve a hub's activities from this machine",
		Long: `Serve a hub's activities from this machine, beside the functions or instead of them.

Each package is built with go build, and each binary taken as it is: a main that calls
lambdahandler.StartWorker, by default ` + defaultWorker + `. It polls the work queue until
this tool is interrupted, finishes what it has begun, and ends. It is given PERDURE_HUB and
this environment, AWS credentials included. Mains of StartOrchestrator, StartRenewer and
StartAPI are served as well; before an inbox is polled, its function's mapping is to be
disabled.`,
		Example: `  perdure worker --hub staging
  perdure worker --queue payments ./functions/worker
  perdure worker ./functions/orchestrator ./functions/worker ./functions/renewer
  perdure worker ./bin/worker`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{defaultWorker}
			}
			return c.workers(cmd.Context(), args, queue)
		},
	}
	cmd.Flags().StringVar(&queue, "queue", "", "the work queue to serve (PERDURE_QUEUE; default: default)")
	return cmd
}

// workers builds and runs programs side by side, until ctx ends or one of them fails.
func (c *command) workers(ctx context.Context, args []string, queue string) error {
	dir, err := os.MkdirTemp("", "perdure-worker-")
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // at best
	env := c.workerEnv(os.Environ(), queue)
	var programs []*exec.Cmd
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for i, arg := range args {
		path, err := c.binary(ctx, arg, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		programs = append(programs, program(ctx, path, env))
	}
	errs := make([]error, len(programs))
	var running sync.WaitGroup
	var mu sync.Mutex
	for i, p := range programs {
		out, complaints := &prefixed{mu: &mu, w: c.out}, &prefixed{mu: &mu, w: c.err}
		if len(programs) > 1 {
			out.prefix, complaints.prefix = label(args[i])+" | ", label(args[i])+" | "
		}
		p.Stdout, p.Stderr = out, complaints
		running.Go(func() {
			defer out.flush()
			defer complaints.flush()
			if errs[i] = ended(ctx, p, args[i]); errs[i] != nil {
				stop()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// workerEnv is this tool's environment but for what would lead a program to another hub, or make it believe that it is on Lambda.
func (c *command) workerEnv(environ []string, queue string) []string {
	drop := []string{"AWS_LAMBDA_RUNTIME_API", "PERDURE_TABLE", "PERDURE_HUB"}
	add := []string{"PERDURE_HUB=" + c.hub}
	if queue != "" {
		drop, add = append(drop, "PERDURE_QUEUE"), append(add, "PERDURE_QUEUE="+queue)
	}
	env := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(drop, name)
	})
	return append(env, add...)
}

// binary builds what is no file, as a package.
func (c *command) binary(ctx context.Context, arg, to string) (string, error) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		path, err := filepath.Abs(arg)
		if err != nil {
			return "", fmt.Errorf("worker: %w", err)
		}
		return path, nil
	}
	if strings.HasPrefix(arg, "-") {
		return "", fmt.Errorf("%q is no package and no binary: see perdure worker --help", arg)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", to, arg) //nolint:gosec // the user names the package
	build.Stdout, build.Stderr = c.err, c.err
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("go build %s: %w: name a package or a binary", arg, err)
	}
	return to, nil
}

// program is told to stop when ctx ends, and killed when it does not.
func program(ctx context.Context, path string, env []string) *exec.Cmd {
	p := exec.CommandContext(ctx, path)
	p.Env, p.WaitDelay = env, workerPatience
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	return p
}

// ended runs a program. One that ends because it is told to has not failed, whether it heeds the signal or dies of it.
func ended(ctx context.Context, p *exec.Cmd, name string) error {
	err := p.Run()
	if ctx.Err() != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok && errors.Is(err, ctx.Err()) {
			return nil
		}
		if ok && !failed.Exited() && signalOf(failed) == syscall.SIGTERM {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func signalOf(e *exec.ExitError) syscall.Signal {
	if s, ok := e.Sys().(syscall.WaitStatus); ok {
		return s.Signal()
	}
	return 0
}

// label tells programs apart in what they print.
func label(arg string) string { return filepath.Base(filepath.Clean(arg)) }

// prefixed puts a prefix before each line, and writes whole lines only, since several programs write to one place.
type prefixed struct {
	mu     *sync.Mutex
	w      io.Writer
	prefix string
	line   bytes.Buffer
}

// Write implements io.Writer.
func (p *prefixed) Write(b []byte) (int, error) {
	if p.prefix == "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.w.Write(b)
	}
	p.line.Write(b)
	for {
		end := bytes.IndexByte(p.line.Bytes(), '\n')
		if end < 0 {
			return len(b), nil
		}
		if err := p.print(p.line.Next(end + 1)); err != nil {
			return 0, err
		}
	}
}

func (p *prefixed) print(line []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.w.Write(append([]byte(p.prefix), line...))
	return err
}

// flush writes a last line that has no end.
func (p *prefixed) flush() {
	if p.line.Len() > 0 {
		_ = p.print(append(p.line.Bytes(), '\n')) // nobody is left to tell
		p.line.Reset()
	}
}
