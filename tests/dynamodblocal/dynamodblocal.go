package dynamodblocal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Server is a DynamoDB Local that answers. It dies with this process, however that ends.
type Server struct {
	Endpoint string // its URL, on the loopback

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read only after ended
	ended  chan struct{}
	err    error // of the process, once it has ended
}

const stopLimit = 20 * time.Second

// target is where make puts it, seen from this package's folder and those beside it: where their tests run.
var target = filepath.Join("..", "dynamodblocal", "target")

// Start starts a server of its own, empty and in memory, and returns when it answers. ctx bounds the start alone. The error of
// a server that does not start ends with what it wrote to standard error. The caller calls Stop.
func Start(ctx context.Context) (*Server, error) {
	if err := built(); err != nil {
		return nil, err
	}
	s := &Server{ended: make(chan struct{})}
	said, err := s.launch()
	if err != nil {
		return nil, err
	}
	select {
	case s.Endpoint = <-said:
		if s.Endpoint != "" {
			return s, nil
		}
		err = errors.New("dynamodblocal: it ended before it answered")
	case <-ctx.Done():
		err = fmt.Errorf("dynamodblocal: it does not answer: %w", context.Cause(ctx))
	}
	return nil, errors.Join(err, s.Stop())
}

// built checks that the jars and the launcher's class are there.
func built() error {
	for _, name := range []string{"jars", "Launcher.class"} {
		if _, err := os.Stat(filepath.Join(target, name)); err != nil {
			return fmt.Errorf("dynamodblocal: DynamoDB Local is not here yet, `make test-dynamodb-local` fetches it: %w", err)
		}
	}
	return nil
}

// launch starts the process. What it says is its endpoint, or empty if it ends without one.
func (s *Server) launch() (said <-chan string, err error) {
	// Not bound to a context: it ends when its standard input does. The options are for a start in a second, the variable
	// keeps it from reporting its use.
	s.cmd = exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", //nolint:noctx,gosec // see above; our own launcher
		"-cp", target+string(filepath.ListSeparator)+filepath.Join(target, "jars", "*"), "Launcher")
	s.cmd.Env = append(os.Environ(), "DDB_LOCAL_TELEMETRY=0")
	s.cmd.Stderr = &s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("dynamodblocal: %w", err)
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("dynamodblocal: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("dynamodblocal: %w", err)
	}
	s.stdin = stdin
	lines := make(chan string, 1)
	go func() {
		r := bufio.NewReader(stdout)
		line, _ := r.ReadString('\n') // cut off: it has ended
		lines <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r) // Wait closes the pipe
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	return lines, nil
}

// Stop ends the server and waits until it is gone. Calling it again does nothing.
func (s *Server) Stop() error {
	_ = s.stdin.Close() // closed already: it is ending
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	select {
	case <-s.ended:
	case <-deadline.C:
		_ = s.cmd.Process.Kill() // gone already: it has ended
		<-s.ended
	}
	if s.err != nil {
		return fmt.Errorf("dynamodblocal: %w\n%s", s.err, s.stderr.String())
	}
	return nil
}
