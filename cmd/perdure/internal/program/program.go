// Package program runs programs that stop when the command is interrupted.
package program

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// stopTimeout is the time between SIGTERM and the kill of a program.
const stopTimeout = 45 * time.Second

// New returns a program that receives SIGTERM when ctx ends. The program is killed if it does not stop within 45
// seconds.
func New(ctx context.Context, path string, environ []string) *exec.Cmd {
	p := exec.CommandContext(ctx, path)
	p.Env = environ
	p.WaitDelay = stopTimeout
	p.Cancel = func() error { return p.Process.Signal(syscall.SIGTERM) }
	return p
}

// Run runs a program and waits for its end. If ctx has ended, exit code 0 and termination by SIGTERM are not errors.
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
