package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// workerPatience is the time after which a worker that was asked to stop is killed.
const stopTimeout = 45 * time.Second

// program returns a program that gets SIGTERM when ctx ends, and is killed when it does not stop.
func New(ctx context.Context, path string, env []string) *exec.Cmd {
	p := exec.CommandContext(ctx, path)
	p.Env = env
	p.WaitDelay = stopTimeout
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	return p
}

// runProgram runs a program. One that ends because it was stopped has not failed, whether it handles the signal or dies
// of it.
func Run(ctx context.Context, p *exec.Cmd, name string) error {
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
