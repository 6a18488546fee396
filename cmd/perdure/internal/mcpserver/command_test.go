package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

const secret = "0123456789abcdef-secret"

// command runs perdure mcp until stop is called. Its standard input and output are pipes.
func command(t *testing.T, f *fixture, args ...string) (stdin *io.PipeWriter, stdout *io.PipeReader, stop func()) {
	t.Helper()
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	env := *f.env
	env.Stdin, env.Stdout, env.Stderr = in, out, io.Discard
	env.Getenv = func(name string) string { return map[string]string{authVariable: secret}[name] }
	env.OpenHub = func(context.Context, string) (cli.Hub, error) { return f.hub, nil }
	cmd := Command(&env)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	return stdin, stdout, func() {
		cancel()
		_ = stdin.Close()
		if err := <-ended; err != nil {
			t.Errorf("perdure mcp: %v", err)
		}
	}
}

func TestCommand_stdio_servesOneClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	stdin, stdout, stop := command(t, f, "--allow", "cancel,pause")
	defer stop()
	f.session = clientSession(t, &mcp.IOTransport{Reader: stdout, Writer: stdin})
	r := f.call("status", arguments{"id": "order-7"})
	r.wantFacts(t, "order-7", "Pending")
	f.confirm("pause", arguments{"id": "order-7"})
	f.wantError("status", arguments{"id": "missing"}, "instance not found")
}

func TestCommand_stdio_endsWithItsInput(t *testing.T) {
	t.Parallel()
	stdin, _, stop := command(t, newFixture(t))
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	stop()
}

// An interrupted command does not wait for its calls.
func TestCommand_interrupted_endsRunningCalls(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	reading := make(chan struct{})
	f.withHistory(&longHistory{before: func(ctx context.Context) error {
		close(reading)
		<-ctx.Done()
		return ctx.Err()
	}})
	stdin, stdout, stop := command(t, f)
	session := clientSession(t, &mcp.IOTransport{Reader: stdout, Writer: stdin})
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		_, _ = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "history", Arguments: arguments{"id": "order-7"}})
	}()
	<-reading
	stop()
	_ = stdout.Close()
	<-returned
}

// bearer adds the token to requests.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func TestCommand_listen_servesClientsWithTheToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start("fulfil", "order-7")
	_, stdout, stop := command(t, f, "--listen", "127.0.0.1:0", "--allow", "cancel")
	defer stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line)
	f.session = clientSession(t, &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: bearer{secret}}, DisableStandaloneSSE: true,
	})
	r := f.call("status", arguments{"id": "order-7"})
	r.wantFacts(t, "order-7")
	f.confirm("cancel", arguments{"id": "order-7"})

	for name, c := range map[string]struct {
		header map[string]string
		host   string
		want   int
	}{
		"no token":       {want: http.StatusUnauthorized},
		"another token":  {header: map[string]string{"Authorization": "Bearer " + secret + "x"}, want: http.StatusUnauthorized},
		"another scheme": {header: map[string]string{"Authorization": "Basic " + secret}, want: http.StatusUnauthorized},
		"a rebound name": {
			header: map[string]string{"Authorization": "Bearer " + secret}, host: "evil.example",
			want: http.StatusMisdirectedRequest,
		},
		"a web page": {
			header: map[string]string{"Authorization": "Bearer " + secret, "Origin": "https://evil.example"},
			want:   http.StatusForbidden,
		},
		"a client": {header: map[string]string{"Authorization": "bearer " + secret}, want: http.StatusOK},
	} {
		body, err := json.Marshal(arguments{
			"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": arguments{
				"protocolVersion": "2025-06-18", "capabilities": arguments{},
				"clientInfo": arguments{"name": "test", "version": "1"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range c.header {
			req.Header.Set(name, value)
		}
		req.Host = c.host
		toolResult, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = toolResult.Body.Close()
		if toolResult.StatusCode != c.want {
			t.Errorf("%s: status %d, want %d", name, toolResult.StatusCode, c.want)
		}
	}
}

func TestCommand_invalidFlags_areErrorsWithTheFix(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--listen must be a loopback address":        {"--listen", "0.0.0.0:8091"},
		"--listen must be a loopback address such":   {"--listen", "example.com:8091"},
		"--listen must be an address such as":        {"--listen", "8091"},
		"--listen must have a port from 0 to 65535":  {"--listen", "127.0.0.1:99999"},
		"--allow \"cancle\" is not an operation":     {"--allow", "cancle"},
		"PERDURE_MCP_TOKEN must be a secret of at":   {"--listen", "[::1]:0"},
		"unexpected argument \"x\"; see mcp --help":  {"x"},
		"PERDURE_MCP_TOKEN must be a secret of at l": {"--listen", "localhost:0"},
	} {
		f := newFixture(t)
		env := *f.env
		env.Getenv = func(string) string { return "short" }
		env.OpenHub = func(context.Context, string) (cli.Hub, error) {
			t.Errorf("%v opens the hub", args)
			return f.hub, nil
		}
		cmd := Command(&env)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// Only this package imports the SDK of MCP, so that applications do not compile it.
func TestImports_protocolSDK_isInThisPackageOnly(t *testing.T) {
	t.Parallel()
	const root = "../../../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "mcpserver" || d.Name() == "node_modules" ||
			strings.HasPrefix(d.Name(), ".") && path != root):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, i := range file.Imports {
			if name, _ := strconv.Unquote(i.Path.Value); strings.HasPrefix(name, "github.com/modelcontextprotocol/") {
				t.Errorf("%s imports %s", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
