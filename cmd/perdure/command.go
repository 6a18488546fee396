package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// command is one invocation of the tool: its dependencies and the global flags.
type command struct {
	open   func(ctx context.Context, name string) (hub, error)
	admin  func(ctx context.Context, hub string) (*hubadmin.Admin, error)
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	err    io.Writer
	now    func() time.Time
	sleep  func(ctx context.Context, d time.Duration) error
	ticker func(every time.Duration) (ticks <-chan time.Time, stop func())
	// attended is true if err is a terminal. Long operations then print their progress more often.
	attended bool

	hub  string
	json bool
}

// hub holds the clients of a hub.
type hub struct {
	client *client.Client
	admin  *admin.Client
}

// newHub returns the clients of a provider's hub.
func newHub(p provider.Provider) hub { return hub{client: client.New(p), admin: admin.New(p)} }

// defaultHub is the name of the hub if none is set.
const defaultHub = "default"

// The exit codes of wait, and of the commands that wait for an instance. Most commands have only the first two.
const (
	exitCompleted = 0
	exitError     = 1
	exitFailed    = 2
	exitCancelled = 3
	exitTimeout   = 4
)

// exit is an error that sets the exit code. The text, if any, is printed on stderr.
type exit struct {
	code int
	text string
}

// Error implements error.
func (e *exit) Error() string { return e.text }

func (c *command) run(ctx context.Context, args []string) int {
	root := c.root() //nolint:contextcheck // cobra passes ctx to the verb
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitCompleted
	}

	code := exitError
	text := advise(err, c.hub)
	if e, ok := errors.AsType[*exit](err); ok {
		code = e.code
		text = e.text
	}
	if text != "" {
		fmt.Fprintln(c.err, "perdure: "+oneLine(text))
	}
	return code
}

func (c *command) root() *cobra.Command {
	root := choice(&cobra.Command{
		Use: "perdure", Short: "Run and operate durable orchestrations on AWS",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: checkTimeout,
	})
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	flags.StringVar(&c.hub, "hub", cmp.Or(c.getenv("PERDURE_HUB"), defaultHub), "hub name (PERDURE_HUB)")
	flags.BoolVar(&c.json, "json", false, "JSON output, as returned by the HTTP API")
	addCommands(root, c)
	return root
}

// checkTimeout rejects a negative --timeout, which would mean no timeout.
func checkTimeout(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags().Lookup("timeout"); f != nil && strings.HasPrefix(f.Value.String(), "-") {
		return &provider.FieldError{Field: "--timeout", Problem: "must not be negative, is " + f.Value.String()}
	}
	return nil
}

// The names of arguments in usage lines.
const (
	argID   = "ID"
	argName = "NAME"
)

// verb returns a command that opens the hub and calls run with its client.
func (c *command) verb(
	use, short string, argument string, run func(ctx context.Context, cl *client.Client, arg string) error,
) *cobra.Command {
	return c.hubVerb(use, short, argument, func(ctx context.Context, h hub, arg string) error {
		return run(ctx, h.client, arg)
	})
}

// operatorVerb returns a command that opens the hub and calls run with its admin client.
func (c *command) operatorVerb(
	use, short string, argument string, run func(ctx context.Context, a *admin.Client, arg string) error,
) *cobra.Command {
	return c.hubVerb(use, short, argument, func(ctx context.Context, h hub, arg string) error {
		return run(ctx, h.admin, arg)
	})
}

// hubVerb returns a command that opens the hub and calls run with its clients.
func (c *command) hubVerb(
	use, short string, argument string, run func(ctx context.Context, h hub, arg string) error,
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: c.complete(argument),
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, argument) },
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := c.open(cmd.Context(), c.hub)
			if err != nil {
				return &openError{err}
			}
			if argument == "" {
				return run(cmd.Context(), h, "")
			}
			return run(cmd.Context(), h, args[0])
		},
	}
}

// checkArgs requires exactly one argument if it has a name, and none otherwise.
func checkArgs(cmd *cobra.Command, args []string, argument string) error {
	switch {
	case argument == "" && len(args) > 0:
		return fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath())
	case argument != "" && len(args) == 0:
		return fmt.Errorf("missing argument %s; usage: %s", argument, cmd.UseLine())
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q; see %s --help", args[1], cmd.CommandPath())
	default:
		return nil
	}
}

// printJSON prints a document, such as the body of an HTTP API response.
func (c *command) printJSON(body any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// print writes text to stdout. A full disk or closed pipe must not look like success.
func (c *command) print(text string) error {
	if _, err := io.WriteString(c.out, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
