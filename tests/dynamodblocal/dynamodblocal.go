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

// Server is a DynamoDB Local that answers. It dies with this process, however that ends.
type Server struct {
	Endpoint string // its URL

	cmd    *exec.Cmd
	stdin  io.Closer
	stderr bytes.Buffer // read only after ended
	ended  chan struct{}
}

const (
	lookEvery = 50 * time.Millisecond
	stopLimit = 20 * time.Second
	// starts is how often a start is tried: a free port may be taken before the server listens on it.
	starts = 3
)

// jars is where make puts DynamoDB Local and what it needs, seen from this package's folder and those beside it: where
// their tests run.
var jars = filepath.Join("..", "dynamodblocal", "target", "jars")

// mainClass is the one that AWS documents, with the options below.
const mainClass = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"

// whileInput runs a command until standard input ends, which it does with whoever holds the other end.
const whileInput = `exec 3<&0; "$@" </dev/null & server=$!
{ cat <&3; kill "$server"; } >/dev/null 2>&1 & wait "$server"`

var errEnded = errors.New("dynamodblocal: it ended before it answered")

// Start starts a server of its own, empty and in memory, and returns when it answers. It listens on every interface,
// since DynamoDB Local has no option for another address. ctx bounds the start alone. The error of a server that does
// not start ends with what it wrote to standard error. The caller calls Stop.
func Start(ctx context.Context) (*Server, error) {
	if _, err := os.Stat(jars); err != nil {
		return nil, fmt.Errorf("dynamodblocal: DynamoDB Local is not here yet, `make dynamodb-local` fetches it: %w",
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
	// Not bound to a context: it ends when its standard input does. The first options are for a start in a second.
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
		_ = s.cmd.Wait() // that it was ended is an error too
		close(s.ended)
	}()
	return nil
}

// await returns when the server answers, be it that the request is not one.
func (s *Server) await(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
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
			return fmt.Errorf("dynamodblocal: it does not answer: %w", context.Cause(ctx))
		}
	}
}

// Stop ends the server and waits until it is gone. Calling it again does nothing.
func (s *Server) Stop() error {
	_ = s.stdin.Close() // closed already: it is ending
	deadline := time.NewTimer(stopLimit)
	defer deadline.Stop()
	select {
	case <-s.ended:
		return nil
	case <-deadline.C:
		return fmt.Errorf("dynamodblocal: it runs %v after it was told to end", stopLimit)
	}
}
