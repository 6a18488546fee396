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

func run(ctx context.Context, c *cli.Env, args []string) int {
	root := newRoot(c) //nolint:contextcheck // cobra passes ctx to the verb
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.CodeOK
	}

	code := cli.CodeError
	text := cli.ErrorText(err, c.HubName)
	if e, ok := errors.AsType[*cli.Exit](err); ok {
		code = e.Code
		text = e.Text
	}
	if text != "" {
		fmt.Fprintln(c.Stderr, "perdure: "+term.OneLine(text))
	}
	return code
}

func newRoot(c *cli.Env) *cobra.Command {
	root := cli.WithSubcommands(&cobra.Command{
		Use: "perdure", Short: "Run and operate durable orchestrations on AWS",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: checkTimeout,
	})
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})

	flags := root.PersistentFlags()
	flags.StringVar(&c.HubName, "hub", cmp.Or(c.Getenv("PERDURE_HUB"), cli.DefaultHub), "hub name (PERDURE_HUB)")
	flags.BoolVar(&c.JSON, "json", false, "JSON output, as returned by the HTTP API")
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
