// Package cli provides the environment of a command: the hub, input and output, exit codes, error messages, and helpers
// that several commands share.
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// Env is the environment of one invocation of the tool, with the global flags.
type Env struct {
	OpenHub        func(ctx context.Context, name string) (Hub, error)
	OpenDeployment func(ctx context.Context, hub string) (*hubadmin.Admin, error)
	// OpenAPI opens the hub of an HTTP API. The default is Authorizer.Hub.
	OpenAPI func(ctx context.Context, endpoint string) (Hub, error)
	// Identity reads the identity of the AWS credentials. The default is ReadIdentity.
	Identity func(ctx context.Context) (Identity, error)

	Getenv func(string) string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Interactive is true if Stderr is a terminal. Long operations then print their progress more often.
	Interactive bool

	Now       func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
	NewTicker func(every time.Duration) (ticks <-chan time.Time, stop func())

	// HubName, Endpoint and JSON are the global flags --hub, --api and --json.
	HubName  string
	Endpoint string
	JSON     bool
	flags    *pflag.FlagSet
}

// Hub contains the clients of a hub.
type Hub struct {
	Client *client.Client
	Admin  *admin.Client
}

// NewHub returns the clients of a provider's hub.
func NewHub(p provider.Provider) Hub { return Hub{Client: client.New(p), Admin: admin.New(p)} }

// Open opens the hub directly or over the HTTP API. An error of direct access is an OpenError.
func (env *Env) Open(ctx context.Context) (Hub, error) {
	if endpoint := env.API(); endpoint != "" {
		if env.OpenAPI != nil {
			return env.OpenAPI(ctx, endpoint)
		}
		return env.Authorizer().Hub(ctx, endpoint)
	}
	h, err := env.OpenHub(ctx, env.HubName)
	if err != nil {
		return h, &OpenError{err}
	}
	return h, nil
}

// DefaultHub is the name of the hub if none is set.
const DefaultHub = "default"

// Print writes text to stdout. It returns write errors, because a full disk or a closed pipe must not look like
// success.
func (env *Env) Print(text string) error {
	if _, err := io.WriteString(env.Stdout, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// PrintJSON prints a document, such as the body of an HTTP API response.
func (env *Env) PrintJSON(body any) error {
	e := json.NewEncoder(env.Stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// PrintResult prints body as JSON with --json, and text otherwise.
func (env *Env) PrintResult(body any, text string) error {
	if env.JSON {
		return env.PrintJSON(body)
	}
	return env.Print(text)
}

// PrintPage prints a page like PrintResult. If there are more rows, it prints the flag --cursor for the next page on
// stderr.
func (env *Env) PrintPage(body any, text, cursor string) error {
	if err := env.PrintResult(body, text); err != nil {
		return err
	}
	if !env.JSON && cursor != "" {
		fmt.Fprintf(env.Stderr, "more rows available; repeat the command with --cursor %s\n", term.Clean(cursor))
	}
	return nil
}

// PrintAccepted prints the response to an accepted message with --json, and nothing otherwise.
func (env *Env) PrintAccepted(id string) error {
	return env.PrintResult(httpapi.AcceptedResponse{InstanceID: id}, "")
}

// PrintResumed prints the result of resuming an instance. An instance that is not paused is not an error.
func (env *Env) PrintResumed(id string, err error) error {
	notPaused := errors.Is(err, client.ErrNotPaused)
	switch {
	case err != nil && !notPaused:
		return err
	case env.JSON:
		return env.PrintJSON(httpapi.AcceptedResponse{InstanceID: id, NotPaused: notPaused})
	case notPaused:
		fmt.Fprintf(env.Stderr, "%s is not recorded as paused; a queued pause is resumed\n", term.Clean(id))
	}
	return nil
}

// Confirm prompts the user to confirm an operation until ctx ends. It returns an error unless the user enters yes.
func (env *Env) Confirm(ctx context.Context, op provider.Operation) error {
	return Ask(ctx, env.Stdin, env.Stderr, string(op)+": continue?", "nothing was changed")
}

// Ask asks a question until ctx ends. It returns an error unless the user enters yes. The error states that nothing was
// done, for example "nothing was changed".
func Ask(ctx context.Context, in io.Reader, out io.Writer, question, nothing string) error {
	fmt.Fprintf(out, "%s [yes/no] ", question)
	answer := make(chan string, 1)
	go func() { // a read from a terminal does not end with ctx
		line, _ := bufio.NewReader(in).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		if strings.TrimSpace(line) == "yes" {
			return nil
		}
		return fmt.Errorf("not confirmed, %s; enter yes or set --yes", nothing)
	case <-ctx.Done():
		fmt.Fprintln(out)
		return context.Cause(ctx)
	}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
