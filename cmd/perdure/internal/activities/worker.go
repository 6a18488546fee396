package activities

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

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/program"
)

// defaultWorker is the package that the command runs if it has no arguments.
const defaultWorker = "./functions/worker"

// Worker returns the command worker.
func Worker(env *cli.Env) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use: "worker [PACKAGE-OR-BINARY...]", Short: "Run workers on this machine",
		Long: `Run workers on this machine, in addition to the hub's functions or instead of them.

The command builds packages with go build, and runs binaries unchanged (default: ` + defaultWorker + `).
Each program must call StartWorker, StartOrchestrator, StartRenewer or StartAPI of package lambdahandler. A
worker polls the work queue until the command is interrupted, and then finishes its running activities.
Programs inherit this environment, including your AWS credentials, and the command sets PERDURE_HUB. Disable
the event source mapping of the orchestrator function before you poll the inbox.`,
		Example: `  perdure worker --hub staging
  perdure worker --queue payments ./functions/worker
  perdure worker ./functions/orchestrator ./functions/worker ./functions/renewer
  perdure worker ./bin/worker`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{defaultWorker}
			}
			return runWorkers(cmd.Context(), env, args, queue)
		},
	}
	cmd.Flags().StringVar(&queue, "queue", "", "work queue (PERDURE_QUEUE) (default: default)")
	return cmd
}

// runWorkers builds and runs programs concurrently, until ctx ends or one of them fails.
func runWorkers(ctx context.Context, env *cli.Env, args []string, queue string) error {
	dir, err := os.MkdirTemp("", "perdure-worker-")
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // best effort

	environ := workerEnviron(env, os.Environ(), queue)
	var programs []*exec.Cmd
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	for i, arg := range args {
		path, err := workerBinary(ctx, env, arg, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		programs = append(programs, program.New(ctx, path, environ))
	}

	errs := make([]error, len(programs))
	var running sync.WaitGroup
	var mu sync.Mutex
	for i, p := range programs {
		stdout := &prefixed{mu: &mu, w: env.Stdout}
		stderr := &prefixed{mu: &mu, w: env.Stderr}
		if len(programs) > 1 {
			stdout.prefix = label(args[i]) + " | "
			stderr.prefix = stdout.prefix
		}
		p.Stdout = stdout
		p.Stderr = stderr

		running.Go(func() {
			defer stdout.flush()
			defer stderr.flush()
			if errs[i] = program.Run(ctx, p, args[i]); errs[i] != nil {
				stop()
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// workerEnviron returns the environment of a program that serves the hub and the queue. It removes the variables of
// this tool that select another hub, and the variable that marks a Lambda environment.
func workerEnviron(env *cli.Env, environ []string, queue string) []string {
	drop := []string{"AWS_LAMBDA_RUNTIME_API", "PERDURE_TABLE", "PERDURE_HUB", client.EndpointVariable}
	add := []string{"PERDURE_HUB=" + env.HubName}
	if queue != "" {
		drop = append(drop, "PERDURE_QUEUE")
		add = append(add, "PERDURE_QUEUE="+queue)
	}

	kept := slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(drop, name)
	})
	return append(kept, add...)
}

// workerBinary returns the path of a program. It builds an argument that is not a file as a package, into the file to.
func workerBinary(ctx context.Context, env *cli.Env, arg, to string) (string, error) {
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		path, err := filepath.Abs(arg)
		if err != nil {
			return "", fmt.Errorf("worker: %w", err)
		}
		return path, nil
	}
	if strings.HasPrefix(arg, "-") {
		return "", fmt.Errorf("%q is not a package or binary; see perdure worker --help", arg)
	}

	build := exec.CommandContext(ctx, "go", "build", "-o", to, arg) //nolint:gosec // the user names the package
	build.Stdout = env.Stderr
	build.Stderr = env.Stderr
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("go build %s: %w; specify a package or a binary", arg, err)
	}
	return to, nil
}

// label returns a name that distinguishes programs in their output.
func label(arg string) string { return filepath.Base(filepath.Clean(arg)) }

// prefixed is a writer that adds a prefix to each line. It writes only whole lines, because several programs share the
// output.
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

// flush writes the last line if it has no line break.
func (p *prefixed) flush() {
	if p.line.Len() > 0 {
		_ = p.print(append(p.line.Bytes(), '\n')) // best effort: the program has ended
		p.line.Reset()
	}
}
