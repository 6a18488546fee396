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

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// command is one call of the tool: its connections, and the flags that all verbs have.
type command struct {
	open   func(ctx context.Context, hub string) (*client.Client, error)
	admin  func(ctx context.Context, hub string) (*hubadmin.Hub, error)
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	err    io.Writer
	now    func() time.Time
	sleep  func(ctx context.Context, d time.Duration) error
	ticker func(every time.Duration) (ticks <-chan time.Time, stop func())
	// attended is whether a person reads err: then long waits show that they last.
	attended bool

	hub  string
	json bool
}

// defaultHub is the hub where none is named.
const defaultHub = "default"

// The exit codes of wait, and of what waits as it does. Most verbs have the first two alone.
const (
	exitCompleted = 0
	exitError     = 1
	exitFailed    = 2
	exitCancelled = 3
	exitTimeout   = 4
)

// exit ends the tool with a code. The text, if any, goes to stderr: what is wrong, and what to do next.
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
		Use: "perdure", Short: "Start durable orchestrations and see how they stand",
		Example: `  perdure start fulfil --id order-7 --input '{"order": 7}'
  perdure watch order-7
  perdure list --status Failed
  source <(perdure completion bash)`,
		Long: `Start durable orchestrations and see how they stand.

Exit codes: 0 when what was asked for was done, 1 on any error. wait, watch, and start and restart with
--wait exit with 2 when the instance failed, and 3 when it was cancelled or terminated. wait, watch, update,
call and start with --update exit with 4 when --timeout was over first. verify, import and doctor have codes
of their own, see there. Errors are one line on stderr, with what to do next. With --json stdout has JSON
alone, but for dev and worker, which print what their programs do.`,
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: checkTimeout,
	})
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	flags.StringVar(&c.hub, "hub", cmp.Or(c.getenv("PERDURE_HUB"), defaultHub), "name of the task hub (PERDURE_HUB)")
	flags.BoolVar(&c.json, "json", false, "print the body of the same call of the HTTP API")
	root.AddCommand(startVerb(c), statusVerb(c), costVerb(c), waitVerb(c), watchVerb(c), listVerb(c), historyVerb(c), whyVerb(c), executionsVerb(c), queryVerb(c), updateVerb(c), callVerb(c), stateVerb(c), raiseVerb(c))
	root.AddCommand(versionsVerb(c), verifyVerb(c), cancelVerb(c), terminateVerb(c), restartVerb(c), purgeVerb(c), jobsVerb(c), workerVerb(c), uiVerb(c))
	root.AddCommand(exportVerb(c), importVerb(c), scheduleVerb(c), deadVerb(c), reconcileVerb(c), pauseVerb(c), resumeVerb(c), doctorVerb(c), sweepVerb(c))
	root.AddCommand(tokenVerbs(c)...)
	root.AddCommand(devVerb(c), initVerb(c), vetVerb(c), versionVerb(c))
	return root
}

// checkTimeout refuses a negative --timeout, which would be no limit at all.
func checkTimeout(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags().Lookup("timeout"); f != nil && strings.HasPrefix(f.Value.String(), "-") {
		return &provider.FieldError{Field: "--timeout", Problem: "must not be negative, is " + f.Value.String()}
	}
	return nil
}

// The arguments that verbs take, as their usage names them.
const (
	argID   = "ID"
	argName = "NAME"
)

// verb makes a command of a function that takes the hub's client.
func (c *command) verb(use, short string, argument string, run func(ctx context.Context, cl *client.Client, arg string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, ValidArgsFunction: c.complete(argument),
		Args: func(cmd *cobra.Command, args []string) error { return checkArgs(cmd, args, argument) },
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := c.open(cmd.Context(), c.hub)
			if err != nil {
				return &openError{err}
			}
			if argument == "" {
				return run(cmd.Context(), cl, "")
			}
			return run(cmd.Context(), cl, args[0])
		},
	}
}

// checkArgs requires one argument where it has a name, and none otherwise.
func checkArgs(cmd *cobra.Command, args []string, argument string) error {
	switch {
	case argument == "" && len(args) > 0:
		return fmt.Errorf("%q is one argument too many: see %s --help", args[0], cmd.CommandPath())
	case argument != "" && len(args) == 0:
		return fmt.Errorf("%s is missing: %s", argument, cmd.UseLine())
	case len(args) > 1:
		return fmt.Errorf("%q is one argument too many: see %s --help", args[1], cmd.CommandPath())
	default:
		return nil
	}
}

// printJSON prints the body of the HTTP API's answer.
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
