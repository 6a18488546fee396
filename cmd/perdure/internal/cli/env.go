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

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// errNotConfirmed is the error of a command that was not confirmed.
var ErrNotConfirmed = &Exit{CodeError, "not confirmed, nothing was changed; answer yes or set --yes"}

// confirmed asks the user on the terminal whether to run an operation.
func (c *Env) Confirm(op provider.Operation) bool {
	fmt.Fprintf(c.Stderr, "%s: continue? [yes/no] ", op)
	answer, _ := bufio.NewReader(c.Stdin).ReadString('\n')
	fmt.Fprintln(c.Stderr)
	return strings.TrimSpace(answer) == "yes"
}

// command is one invocation of the tool: its dependencies and the global flags.
type Env struct {
	OpenHub        func(ctx context.Context, name string) (Hub, error)
	OpenDeployment func(ctx context.Context, hub string) (*hubadmin.Admin, error)
	Getenv         func(string) string
	Stdin          io.Reader
	Stdout         io.Writer
	Stderr         io.Writer
	Now            func() time.Time
	Sleep          func(ctx context.Context, d time.Duration) error
	NewTicker      func(every time.Duration) (ticks <-chan time.Time, stop func())
	// attended is true if err is a terminal. Long operations then print their progress more often.
	Interactive bool

	HubName string
	JSON    bool
}

// hub holds the clients of a hub.
type Hub struct {
	Client *client.Client
	Admin  *admin.Client
}

// newHub returns the clients of a provider's hub.
func NewHub(p provider.Provider) Hub { return Hub{Client: client.New(p), Admin: admin.New(p)} }

// defaultHub is the name of the hub if none is set.
const DefaultHub = "default"

// printJSON prints a document, such as the body of an HTTP API response.
func (c *Env) PrintJSON(body any) error {
	e := json.NewEncoder(c.Stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// print writes text to stdout. A full disk or closed pipe must not look like success.
func (c *Env) Print(text string) error {
	if _, err := io.WriteString(c.Stdout, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// more prints how to continue a list that has more rows.
func (c *Env) PrintCursor(cursor string) {
	if cursor != "" {
		fmt.Fprintf(c.Stderr, "more rows available; repeat the command with --cursor %s\n", term.Clean(cursor))
	}
}

// resumed prints the result of resuming an instance. An instance that is not paused is not an error.
func PrintResumed(c *Env, id string, err error) error {
	notPaused := errors.Is(err, client.ErrNotPaused)
	switch {
	case err != nil && !notPaused:
		return err
	case c.JSON:
		return c.PrintJSON(httpapi.AcceptedResponse{InstanceID: id, NotPaused: notPaused})
	case notPaused:
		fmt.Fprintf(c.Stderr, "%s is not recorded as paused; a pause in flight is resumed\n", term.Clean(id))
	}
	return nil
}

// isTerminal reports whether what is written to w is shown to a person.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// accepted prints the response of an accepted message with --json, and nothing without.
func (c *Env) PrintAccepted(id string) error {
	if c.JSON {
		return c.PrintJSON(httpapi.AcceptedResponse{InstanceID: id})
	}
	return nil
}
