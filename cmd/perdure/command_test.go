package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

var update = flag.Bool("update", false, "write the golden files")

var began = time.Date(2026, 7, 1, 3, 0, 0, 0, time.UTC)

// tool runs commands on a hub in memory.
type tool struct {
	*fakeprovider.Provider

	t           *testing.T
	out, err    bytes.Buffer
	in          string
	env         map[string]string
	openedHub   string
	openError   error
	adminHub    *hubadmin.Admin
	client      *client.Client // default: a client of Provider
	admin       *admin.Client  // default: a client of Provider
	interactive bool           // the terminal is interactive
	sleep       func(ctx context.Context, d time.Duration) error
	stderr      io.Writer // default: err
	identity    func(ctx context.Context) (cli.Identity, error)
	ticker      func(every time.Duration) (ticks <-chan time.Time, stop func())
	now         func() time.Time // default: began
}

func setup(t *testing.T) *tool {
	t.Helper()
	return &tool{
		Provider: fakeprovider.New(func() time.Time {
			return began
		}, "hello", "fulfil", "perdure.schedule", "@account"), t: t, env: map[string]string{}, sleep: waitFor,
		ticker: cli.NewTicker,
	}
}

// run runs a command, stores its output in out and err, and returns its exit code.
func (h *tool) run(ctx context.Context, args ...string) int {
	h.out.Reset()
	h.err.Reset()
	clock := func() time.Time { return began }
	hub := cli.Hub{
		Client: cmp.Or(h.client, client.New(h.Provider, client.WithClock(clock))),
		Admin:  cmp.Or(h.admin, admin.New(h.Provider, admin.WithClock(clock))),
	}
	open := func(_ context.Context, name string) (cli.Hub, error) {
		h.openedHub = name
		if isOverAPI(h.t) && h.openError == nil {
			return dialed(h.t, hub, clock), nil
		}
		return hub, h.openError
	}
	openAPI := func(_ context.Context, endpoint string) (cli.Hub, error) {
		h.openedHub = endpoint
		return dialed(h.t, hub, clock), h.openError
	}
	deployed := func(context.Context, string) (*hubadmin.Admin, error) { return h.adminHub, h.openError }
	now := func() time.Time { return began }
	if h.now != nil {
		now = h.now
	}
	var stderr io.Writer = &h.err
	if h.stderr != nil {
		stderr = h.stderr
	}
	env := &cli.Env{
		OpenHub: open, OpenAPI: openAPI, Identity: h.identity, OpenDeployment: deployed, Getenv: func(k string) string {
			return h.env[k]
		}, Stdin: strings.NewReader(h.in), Stdout: &h.out, Stderr: stderr,
		Now: now, Sleep: h.sleep, NewTicker: h.ticker, Interactive: h.interactive,
	}
	return run(ctx, env, args)
}

func (h *tool) mustRun(args ...string) string {
	h.t.Helper()
	if code := h.run(h.t.Context(), args...); code != 0 {
		h.t.Fatalf("perdure %s: exit %d: %s", strings.Join(args, " "), code, h.err.String())
	}
	return h.out.String()
}

// wantError runs a command that must fail with one line on stderr and nothing on stdout.
func (h *tool) wantError(code int, wanted string, args ...string) {
	h.t.Helper()
	got := h.run(h.t.Context(), args...)
	if text := h.err.String(); got != code ||
		!strings.HasPrefix(text, "perdure: ") || !strings.Contains(text, wanted) ||
		strings.Count(text, "\n") != 1 || h.out.Len() > 0 {
		h.t.Errorf("perdure %s: exit %d, want %d; stderr %q wants %q; stdout %q", strings.Join(args, " "), got, code,
			text, wanted, h.out.String())
	}
}

func (h *tool) wantGolden(name string) {
	h.t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, h.out.Bytes(), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	if got := h.out.String(); got != string(want) {
		h.t.Errorf("printed\n%s\n%s holds\n%s", got, file, want)
	}
}

func at(after time.Duration, e history.Event) history.Event {
	e.Time = began.Add(after)
	return e
}

func completed(output string) history.Event {
	return at(4100*time.Millisecond, history.Event{
		Kind: history.OrchestrationCompleted, Output: history.NewInlinePayload([]byte(output)),
	})
}

func TestHubName_flagAndEnvironment_flagTakesPrecedence(t *testing.T) {
	t.Parallel()
	h := setup(t)
	if h.mustRun("list"); h.openedHub != "default" {
		t.Errorf("by default, hub %q", h.openedHub)
	}
	h.env["PERDURE_HUB"] = "staging"
	if h.mustRun("list"); h.openedHub != "staging" {
		t.Errorf("with PERDURE_HUB, hub %q", h.openedHub)
	}
	if h.mustRun("list", "--hub", "mine"); h.openedHub != "mine" {
		t.Errorf("with --hub, hub %q", h.openedHub)
	}
}

func TestCommands_errors_areOneLineWithFix(t *testing.T) {
	t.Parallel()
	throttled := &provider.Error{Op: "DynamoDB.GetItem", Retryable: true, Err: errors.New("slow\ndown\x1b[2J")}
	for wanted, tt := range map[string]struct {
		args       []string
		open, fail error
	}{
		`hub "default" not found in this account and region`: {
			args: []string{"list"}, open: fmt.Errorf("dynamo: %w", provider.ErrNotFound),
		},
		"check AWS credentials": {args: []string{"list"}, open: errors.New("no\ncredentials")},
		"run perdure list":      {args: []string{"status", "missing"}},
		"run perdure list ":     {args: []string{"wait", "missing"}},
		"run perdure list to":   {args: []string{"history", "missing"}},
		"check the spelling":    {args: []string{"start", "missing"}},
		"try again":             {args: []string{"status", "x"}, fail: throttled},
		"missing argument ID; usage: perdure status ID":                     {args: []string{"status"}},
		"unexpected argument":                                               {args: []string{"list", "x"}},
		`unexpected argument "y"`:                                           {args: []string{"status", "x", "y"}},
		"unknown flag: --bad; see perdure wait":                             {args: []string{"wait", "x", "--bad"}},
		`unknown command "frobnicate"; see perdure --help`:                  {args: []string{"frobnicate"}},
		`unknown command "histry" (did you mean history?); see`:             {args: []string{"histry"}},
		`"redriv" (did you mean redrive?); see perdure dead-letters --help`: {args: []string{"dead-letters", "redriv"}},
		`unknown command "lisst" (did you mean list?)`:                      {args: []string{"schedule", "lisst"}},
		"perdure: token was not issued":                                     {args: []string{"complete", "token"}},
		"perdure: --orchestration is required": {
			args: []string{"schedule", "put", "nightly", "--expression", "@daily"},
		},
		"perdure: --expression is required": {
			args: []string{"schedule", "put", "nightly", "--orchestration", "hello"},
		},
		"--limit must be 1 to 1000":               {args: []string{"list", "--limit", "0"}},
		"limit must be 1 to 1000":                 {args: []string{"list", "--limit", "1001"}},
		"status must be one of":                   {args: []string{"list", "--status", "done"}},
		"input is not valid JSON: unexpected end": {args: []string{"start", "hello", "--input", "{"}},
		"input is not valid JSON ":                {args: []string{"start", "hello", "--input", ""}},
		"no-such-file": {
			args: []string{"start", "hello", "--input", "@no-such-file"},
		},
		"instanceId must be 1 to":                            {args: []string{"start", "hello", "--id", ""}},
		`--tag "k" is not KEY=VALUE`:                         {args: []string{"start", "hello", "--tag", "k"}},
		"delay must be 0s to 87672h0m0s (ten years), is -1s": {args: []string{"start", "hello", "--delay", "-1s"}},
		"delay must be 0s to 87672h0m0s (ten years)":         {args: []string{"start", "hello", "--delay", "87673h"}},
		`invalid argument "soon" for "--delay"`:              {args: []string{"start", "hello", "--delay", "soon"}},
		"idempotencyKey must be 1 to": {args: []string{
			"start", "hello", "--idempotency-key", "",
		}},
		"version must be 0 to":             {args: []string{"start", "hello", "--version", strings.Repeat("1", 65)}},
		"tags has a key that must be 1 to": {args: []string{"start", "hello", "--tag", "=v"}},
		`--tag "k" is set more than once`:  {args: []string{"start", "hello", "--tag", "k=1", "--tag", "k=2"}},
	} {
		t.Run(wanted, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.openError = tt.open
			h.FailWith(tt.fail)
			h.wantError(cli.CodeError, strings.TrimSpace(wanted), tt.args...)
			if strings.Contains(h.err.String(), "\x1b") {
				t.Errorf("an escape sequence reaches the terminal: %q", h.err.String())
			}
		})
	}
}

func TestCommands_outputCannotBeWritten_isAnError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"list"}, {"list", "--json"}} {
		h := setup(t)
		open := func(context.Context, string) (cli.Hub, error) { return cli.NewHub(h.Provider), nil }
		admin := func(context.Context, string) (*hubadmin.Admin, error) { return h.adminHub, h.openError }
		env := &cli.Env{OpenHub: open, OpenDeployment: admin, Getenv: func(string) string {
			return ""
		}, Stdin: nil, Stdout: closed{}, Stderr: &h.err}
		if code := run(t.Context(), env, args); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "closed pipe") {
			t.Errorf("%v: exit %d, %s", args, code, h.err.String())
		}
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed pipe") }
