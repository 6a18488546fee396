// Package localcloud starts and stops a local AWS for tests: localstack/local.py of this repository, with ministack in
// it.
package localcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Cloud is a local AWS that answers. It dies with this process, however that ends.
type Cloud struct {
	// Env is what a program needs to find it: AWS_ENDPOINT_URL, credentials, and for "up" PERDURE_HUB and PERDURE_API.
	Env map[string]string `json:"env"`
	// PID is that of the emulator, which is the parent of the functions' processes.
	PID int `json:"pid"`
	// LogDir has the emulator's log, ministack.log, and for each function what it writes, <function>.log.
	LogDir string `json:"logDir"`

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read only after ended
	ended  chan struct{}
	err    error // of the process, once it has ended
	dir    string
}

const (
	lookEvery = 20 * time.Millisecond
	stopLimit = 20 * time.Second
)

// SetUpLimit is the time limit of deploying an application for tests. It includes the compilation of all functions from
// an empty cache on a busy machine, which took 5 minutes.
const SetUpLimit = 15 * time.Minute

// Start runs local.py, from the root of the repository, with a subcommand and its arguments ("cloud", or "up" and its
// options), and returns when the cloud is up. ctx bounds the start alone. The error of a cloud that does not start ends
// with what it wrote to standard error. The caller calls Stop.
func Start(ctx context.Context, command string, args ...string) (*Cloud, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "perdure-localcloud-")
	if err != nil {
		return nil, fmt.Errorf("localcloud: %w", err)
	}
	c := &Cloud{dir: dir, ended: make(chan struct{})}
	file := filepath.Join(dir, "env.json")
	if err := c.launch(root, append([]string{command, "--env-file", file, "--until-eof"}, args...)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.await(ctx, file); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cloud) launch(root string, args []string) error {
	// Not bound to a context: it ends when its standard input does, and cleans up.
	args = append([]string{filepath.Join("localstack", "local.py")}, args...)
	c.cmd = exec.Command("python3", args...) //nolint:noctx,gosec // see above; our own script
	c.cmd.Dir, c.cmd.Stderr = root, &c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("localcloud: %w", err)
	}
	c.stdin = stdin
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("localcloud: %w", err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return nil
}

// await returns when the file is there, which is written whole.
func (c *Cloud) await(ctx context.Context, file string) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		b, err := os.ReadFile(file) //nolint:gosec // in our own folder
		if err == nil {
			return c.decode(b)
		}
		select {
		case <-look.C:
		case <-c.ended:
			return fmt.Errorf("localcloud: local.py ended before the cloud was up: %w\n%s", c.err, c.stderr.String())
		case <-ctx.Done():
			return fmt.Errorf("localcloud: the cloud is not up: %w", context.Cause(ctx))
		}
	}
}

func (c *Cloud) decode(b []byte) error {
	if err := json.Unmarshal(b, c); err != nil {
		return fmt.Errorf("localcloud: environment file: %w", err)
	}
	return nil
}

// Ended is closed when the cloud has ended, by Stop or by itself.
func (c *Cloud) Ended() <-chan struct{} { return c.ended }

// Stop ends the cloud and everything on it, and waits until it is gone. Calling it again does nothing.
func (c *Cloud) Stop() error {
	_ = c.stdin.Close() // closed already: it is ending
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	select {
	case <-c.ended:
	case <-deadline.C:
		_ = c.cmd.Process.Kill() // gone already: it has ended
		<-c.ended
	}
	if c.err != nil {
		return errors.Join(fmt.Errorf("localcloud: %w\n%s", c.err, c.stderr.String()), os.RemoveAll(c.dir))
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("localcloud: %w", err)
	}
	return nil
}

// repository is the folder above the working directory that has localstack in it.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("localcloud: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "localstack", "local.py")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("localcloud: not inside the repository: no folder above has localstack/local.py")
		}
		dir = parent
	}
}
