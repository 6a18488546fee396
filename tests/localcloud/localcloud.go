// Package localcloud starts and stops a local AWS for tests. It runs localstack/local.py of this repository, which runs
// ministack.
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

// Cloud is a running local AWS. It ends with this process, even if this process is killed.
type Cloud struct {
	// Env has the environment variables for clients: AWS_ENDPOINT_URL and credentials. After "up", it also has
	// PERDURE_HUB. API is then the URL of a proxy of the HTTP API that signs requests as root, and APIHost is the host
	// of the API itself, which does not resolve: the emulator serves it.
	Env     map[string]string `json:"env"`
	API     string            `json:"api"`
	APIHost string            `json:"apiHost"`
	// PID is the process ID of the emulator, which is the parent of the processes of the functions.
	PID int `json:"pid"`
	// LogDir is the folder of the logs: ministack.log of the emulator, and <function>.log of each function.
	LogDir string `json:"logDir"`

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read only after ended
	ended  chan struct{}
	err    error // of the process; set when it has ended
	dir    string
}

const (
	pollInterval = 20 * time.Millisecond
	stopLimit    = 20 * time.Second
)

// SetUpLimit is the time limit of deploying an application for tests. It includes the compilation of all functions from
// an empty cache on a busy machine, which took 5 minutes.
const SetUpLimit = 15 * time.Minute

// Start runs local.py in the root of the repository, and returns when the cloud is ready. The command is "cloud", or
// "up" with options in args. The context ctx limits only the start. If the cloud does not start, the error contains its
// standard error. The caller must call Stop.
func Start(ctx context.Context, command string, args ...string) (*Cloud, error) {
	root, err := Repository()
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
	// The process has no context, because it cleans up and ends with its standard input.
	args = append([]string{filepath.Join("localstack", "local.py")}, args...)
	c.cmd = exec.Command("python3", args...) //nolint:noctx,gosec // see above; a script of this repository
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

// await returns when the file exists. The script writes it atomically.
func (c *Cloud) await(ctx context.Context, file string) error {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		b, err := os.ReadFile(file) //nolint:gosec // in the folder of this cloud
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

// Ended returns a channel that is closed when the cloud has ended, by Stop or by itself.
func (c *Cloud) Ended() <-chan struct{} { return c.ended }

// Stop stops the cloud and its functions, and waits until they have ended. Further calls have no effect.
func (c *Cloud) Stop() error {
	_ = c.stdin.Close() // an error means that it is already closed
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	select {
	case <-c.ended:
	case <-deadline.C:
		_ = c.cmd.Process.Kill() // an error means that it has already ended
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

// Repository returns the closest parent of the working directory that has the folder localstack.
func Repository() (string, error) {
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
