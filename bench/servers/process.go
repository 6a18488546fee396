// Package servers starts the servers of peers on free ports of the loopback interface, and stops each one by its
// process ID. Their files are in memory (/dev/shm), so that the benchmark does not measure a disk. It requires Linux.
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

// Process is a server process. The kernel kills it when this process ends.
type Process struct {
	cmd    *exec.Cmd
	dir    string
	stop   syscall.Signal
	stdin  io.WriteCloser
	stdout io.ReadCloser
	ended  chan struct{}
}

// options are the optional settings of start.
type options struct {
	env    []string
	stop   syscall.Signal
	as     *syscall.Credential
	stderr io.Writer
}

// start starts a program in dir. Stop removes dir, as does start if it fails.
func start(dir string, o options, program string, args ...string) (*Process, error) {
	p := &Process{dir: dir, stop: o.stop, ended: make(chan struct{})}
	p.cmd = exec.Command(program, args...) //nolint:noctx,gosec // Stop lets the program clean up
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, append(os.Environ(), o.env...), o.stderr
	// A separate process group does not receive Ctrl-C. Stop ends the server after its engine was closed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: o.as}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	// The pipe of StdoutPipe would not do: Wait closes it before all output is read.
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("servers: %w", err)
	}
	p.cmd.Stdout, p.stdout = in, out
	err = p.cmd.Start()
	_ = in.Close() // the server has a copy
	if err != nil {
		err = fmt.Errorf("servers: %w; install the servers with make bench-peers", err)
		return nil, errors.Join(err, out.Close(), os.RemoveAll(dir))
	}
	go func() {
		_ = p.cmd.Wait() // Stop ends it, so the exit status has no meaning
		close(p.ended)
	}()
	return p, nil
}

// PID returns the process ID of the server.
func (p *Process) PID() int { return p.cmd.Process.Pid }

const stopLimit = 5 * time.Second

// Stop stops the server and removes its directory.
func (p *Process) Stop() error {
	_ = p.stdin.Close() // an error means that the server is ending
	if p.stop != 0 {
		_ = p.cmd.Process.Signal(p.stop) // an error means that the server has ended
	}
	select {
	case <-p.ended:
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill() // as above
		<-p.ended
	}
	_ = p.stdout.Close() // there is no reader any more
	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	return nil
}

// newDir creates a directory in /dev/shm, or in the default directory for temporary files if there is no /dev/shm.
func newDir() (string, error) {
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

// port returns a free port.
func port(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("servers: %w", err)
	}
	defer func() { _ = l.Close() }()         // only its number is needed
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // its network is tcp
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
	readyLimit = 30 * time.Second
	readyPoll  = 50 * time.Millisecond
)

// waitReady waits until the server responds.
func (p *Process) waitReady(ctx context.Context, responds func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for {
		err := responds(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("servers: the server ended before it was ready: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("servers: the server is not ready: %w", err)
		case <-time.After(readyPoll):
		}
	}
}
