package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider"
)

func run(ctx context.Context, env *cli.Env, args []string) int {
	root := newRoot(env) //nolint:contextcheck // cobra passes ctx to the command
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.CodeOK
	}

	code := cli.CodeError
	text := env.ErrorText(err)
	if e, ok := errors.AsType[*cli.ExitError](err); ok {
		code = e.Code
		text = e.Text
	}
	if text != "" {
		fmt.Fprintln(env.Stderr, "perdure: "+term.OneLine(text))
	}
	return code
}

func newRoot(env *cli.Env) *cobra.Command {
	root := cli.WithSubcommands(&cobra.Command{
		Use: "perdure", Short: "Run and operate durable orchestrations on AWS",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return cmp.Or(checkTimeout(cmd), env.CheckTransport(), checkDirect(env, cmd))
		},
	})
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	env.AddTransportFlags(flags)
	flags.BoolVar(&env.JSON, "json", false, "JSON output, as returned by the HTTP API")
	addCommands(root, env)
	return root
}

// checkTimeout rejects a negative --timeout, which would mean no timeout.
func checkTimeout(cmd *cobra.Command) error {
	if f := cmd.Flags().Lookup("timeout"); f != nil && strings.HasPrefix(f.Value.String(), "-") {
		return &provider.FieldError{Field: "--timeout", Problem: "must not be negative, is " + f.Value.String()}
	}
	return nil
}

// directCommands are the commands that need direct access to AWS, with the reason, without the commands of operations
// that have no route and the commands of the hub's AWS resources.
var directCommands = map[string]string{
	"dev": "it runs a local AWS", "worker": "it polls the queues of the hub", "deploy": "it changes AWS resources",
	"verify": "it reads stored payloads for the new build",
}

// checkDirect rejects a command that the HTTP API cannot serve.
func checkDirect(env *cli.Env, cmd *cobra.Command) error {
	name := strings.TrimPrefix(cmd.CommandPath(), "perdure ")
	reason := cmp.Or(directCommands[name], withoutRoute(name))
	if reason == "" {
		return nil
	}
	return env.RequireDirect(cmd, reason)
}

// withoutRoute returns the reason why no operation of a command has a route, or "" if one has.
func withoutRoute(command string) (reason string) {
	for _, o := range api.Operations() {
		if !slices.Contains(o.Command.Names, command) {
			continue
		}
		if o.Path != "" {
			return ""
		}
		reason = o.NoRoute
	}
	return reason
}
