package dynamodblocal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Server is a running DynamoDB Local. It ends with this process, even if this process is killed.
type Server struct {
	Endpoint string // its URL

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read only after ended
	ended  chan struct{}
}

const (
	pollInterval = 50 * time.Millisecond
	stopLimit    = 20 * time.Second
	// starts is the number of attempts to start. Another process may take the free port before the server listens on
	// it.
	starts = 3
)

// jars is the folder of DynamoDB Local and its dependencies, which make creates. The path is relative to each folder in
// tests/, because tests run there.
var jars = filepath.Join("..", "dynamodblocal", "target", "jars")

// mainClass is the documented main class of DynamoDB Local.
const mainClass = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"

// whileInput is a shell script that runs a command until standard input ends. Standard input ends with the process that
// has its other end.
const whileInput = `exec 3<&0; "$@" </dev/null & server=$!
{ cat <&3; kill "$server"; } >/dev/null 2>&1 & wait "$server"`

var errEnded = errors.New("dynamodblocal: server ended before its first response")

// Start starts a new, empty server in memory, and returns when the server responds. The server listens on all
// interfaces, because DynamoDB Local has no option for an address. The context ctx limits only the start. If the server
// does not start, the error contains its standard error. The caller must call Stop.
func Start(ctx context.Context) (*Server, error) {
	if _, err := os.Stat(jars); err != nil {
		return nil, fmt.Errorf("dynamodblocal: DynamoDB Local is not installed; run make dynamodb-local: %w",
			err)
	}
	var err error
	for range starts {
		var s *Server
		if s, err = start(ctx); err == nil {
			return s, nil
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, err
}

func start(ctx context.Context) (*Server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	s := &Server{Endpoint: "http://127.0.0.1:" + strconv.Itoa(port), ended: make(chan struct{})}
	if err := s.launch(port); err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		stopped := s.Stop()
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, s.stderr.String()), stopped)
	}
	return s, nil
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("dynamodblocal: %w", errors.Join(err, context.Cause(ctx)))
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("dynamodblocal: %w", err)
	}
	return port, nil
}

func (s *Server) launch(port int) error {
	// The server has no context, because it ends with its standard input. The first options shorten the start to a
	// second.
	s.cmd = exec.Command("sh", "-c", whileInput, "sh", //nolint:noctx,gosec // see above; constants and a port
		"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-cp", filepath.Join(jars, "*"), mainClass,
		"-port", strconv.Itoa(port), "-inMemory", "-sharedDb", "-disableTelemetry")
	s.cmd.Stderr = &s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("dynamodblocal: %w", err)
	}
	s.stdin = stdin
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("dynamodblocal: %w", err)
	}
	go func() {
		_ = s.cmd.Wait() // the error of a stopped server is expected
		close(s.ended)
	}()
	return nil
}

// await returns when the server responds to a request, even with an error status.
func (s *Server) await(ctx context.Context) error {
	look := time.NewTicker(pollInterval)
	defer look.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, http.NoBody)
		if err != nil {
			return fmt.Errorf("dynamodblocal: %w", err)
		}
		if response, err := http.DefaultClient.Do(r); err == nil {
			return response.Body.Close()
		}
		select {
		case <-look.C:
		case <-s.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("dynamodblocal: server does not respond: %w", context.Cause(ctx))
		}
	}
}

// Stop stops the server and waits until it has ended. Further calls have no effect. Stop returns an error if the server
// still runs after 20 seconds.
func (s *Server) Stop() error {
	_ = s.stdin.Close() // an error means that it is already closed
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	select {
	case <-s.ended:
		return nil
	case <-deadline.C:
		return fmt.Errorf("dynamodblocal: server is still running %v after the stop signal", stopLimit)
	}
}
