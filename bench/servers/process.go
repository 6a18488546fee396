// Package servers starts the servers that peers need, on free ports of the loopback, and stops each by its own process id. What they keep lies
// in memory (/dev/shm), so that no disk is measured. It is for Linux.
package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Process is a server. It dies with this process, however that ends.
type Process struct {
	cmd    *exec.Cmd
	dir    string
	stop   syscall.Signal
	stdin  io.WriteCloser
	stdout io.ReadCloser
	ended  chan struct{}
}

// options of start.
type options struct {
	env    []string
	stop   syscall.Signal
	as     *syscall.Credential
	stderr io.Writer
}

// start starts a program. dir is its own folder, removed when it is stopped or does not start.
func start(dir string, o options, program string, args ...string) (*Process, error) {
	p := &Process{dir: dir, stop: o.stop, ended: make(chan struct{})}
	p.cmd = exec.Command(program, args...) //nolint:noctx,gosec // it is stopped by Stop, which lets it clean up
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, append(os.Environ(), o.env...), o.stderr
	// A group of its own: a Ctrl-C is for us, who stop it when the engine on it is closed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: o.as}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	// A pipe of our own: exec's would be closed by Wait before all is read.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	p.cmd.Stdout, p.stdout = in, out
	err = p.cmd.Start()
	_ = in.Close() // the server has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("servers: make bench-peers installs what it runs: %w", err), out.Close(), os.RemoveAll(dir))
	}
	go func() {
		_ = p.cmd.Wait() // how it ends says nothing: it is stopped
		close(p.ended)
	}()
	return p, nil
}

// PID is that of the server.
func (p *Process) PID() int { return p.cmd.Process.Pid }

const stopLimit = 5 * time.Second

// Stop ends the server, and removes what it kept.
func (p *Process) Stop() error {
	_ = p.stdin.Close() // closed already: it is ending
	if p.stop != 0 {
		_ = p.cmd.Process.Signal(p.stop) // gone already: it has ended
	}
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill() // the same
		<-p.ended
	}
	_ = p.stdout.Close() // nobody reads it any more
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

// folder makes a folder in memory, or where the system keeps what is temporary if there is none such.
func folder() (string, error) {
	parent := "/dev/shm"
	if _, err := os.Stat(parent); err != nil {
		parent = ""
	}
	dir, err := os.MkdirTemp(parent, "perdure-bench-")
	if err != nil {
		return "", fmt.Errorf("servers: %w", err)
	}
	return dir, nil
}

// port is one that is free now.
func port(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("servers: %w", err)
	}
	defer func() { _ = l.Close() }()         // it was for the number alone
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // of network tcp
}

func ports(ctx context.Context, n int) ([]int, error) {
	out := make([]int, n)
	for i := range out {
		var err error
		if out[i], err = port(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const (
	upLimit   = 30 * time.Second
	lookEvery = 50 * time.Millisecond
)

// up waits until a server answers.
func (p *Process) up(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, upLimit)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("servers: it ended before it was up: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("servers: it is not up: %w", err)
		case <-time.After(lookEvery):
		}
	}
}
