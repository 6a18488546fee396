package development

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
	"github.com/perdure/perdure/history"
)

// Import returns the command import.
func Import(env *cli.Env) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Replay an exported history",
		Long: `Replay an exported history against a binary on this machine.

FILE is the output of perdure export, a file of perduretest (Env.CompareGolden), or - for stdin. The
orchestrator binary, built for this machine, replays each execution. The command reports whether the code
makes the recorded decisions, or the first event at which they differ. It needs no hub, runs no activities
and writes nothing. The binary gets no hub settings and no AWS credentials.

Exit codes:
  0  the code makes the recorded decisions; inputs may differ and are shown
  1  error
  2  the code makes other decisions
  4  --timeout expired`,
		Example: `  perdure export order-7 --hub production > order-7.json
  go build -o dist/orchestrator-local ./functions/orchestrator
  perdure import order-7.json --binary dist/orchestrator-local`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "FILE") },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
			defer cancel()
			doc, err := readExported(env, args[0])
			if err != nil {
				return err
			}
			r, err := verification.ReplayDocument(ctx, &doc, f.binary)
			if err != nil {
				if cmd.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
					return cli.Exitf(cli.CodeTimeout, "replay not finished after %s; increase --timeout", f.timeout)
				}
				return err
			}
			return r.Print(env)
		},
	}
	f.add(cmd, "replay")
	return cmd
}

// readExported reads a history document from a file, or from stdin.
func readExported(env *cli.Env, file string) (doc history.Document, err error) {
	var b []byte
	if file == "-" {
		b, err = io.ReadAll(env.Stdin)
	} else {
		b, err = os.ReadFile(file) //nolint:gosec // the user names the file
	}
	if err != nil {
		return doc, fmt.Errorf("read history: %w", err)
	}
	if doc, err = history.DecodeDocument(b); err != nil {
		return doc, fmt.Errorf("%s is not a history exported by perdure export: %w", file, err)
	}
	return doc, nil
}
