package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
	text := cli.ErrorText(err, env.HubName)
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
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: checkTimeout,
	})
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	flags.StringVar(&env.HubName, "hub", cmp.Or(env.Getenv("PERDURE_HUB"), cli.DefaultHub), "hub name (PERDURE_HUB)")
	flags.BoolVar(&env.JSON, "json", false, "JSON output, as returned by the HTTP API")
	addCommands(root, env)
	return root
}

// checkTimeout rejects a negative --timeout, which would mean no timeout.
func checkTimeout(cmd *cobra.Command, _ []string) error {
	if f := cmd.Flags().Lookup("timeout"); f != nil && strings.HasPrefix(f.Value.String(), "-") {
		return &provider.FieldError{Field: "--timeout", Problem: "must not be negative, is " + f.Value.String()}
	}
	return nil
}
