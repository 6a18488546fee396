package development

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/analysis"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Vet returns the command vet.
func Vet(env *cli.Env) *cobra.Command {
	var disable string
	var warnings bool
	cmd := &cobra.Command{
		Use: "vet [PACKAGE...]", Short: "Find mistakes in orchestrations",
		Long: `Find mistakes in orchestrations before they run.

The command finds code that differs between replays, waits for something that is not in the history, or
discards a result. It checks packages of the module in the current directory (default: ./...) and requires
the go command. Findings are lines on stderr, or with --json a "go vet -json" document on stdout. The rules
are in docs/reference/linter.md.

Exit codes:
  0  no findings, or --json is set
  1  findings, or the packages do not build`,
		Example: `  perdure vet
  perdure vet --disable globalread,log ./orders
  go vet -vettool=$(which perdure) ./...`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := analysis.New().Flags.Set("disable", disable); err != nil {
				return fmt.Errorf("--disable: %w", err)
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return runVet(cmd.Context(), env, vetArgs(self, disable, warnings, env.JSON, args))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&disable, "disable", "", "rules to disable, comma-separated")
	flags.BoolVar(&warnings, "warnings", true, "inclusion of findings in possibly correct code")
	return cmd
}

// vetArgs returns the arguments of the go command.
func vetArgs(self, disable string, warnings, json bool, packages []string) []string {
	args := []string{"vet", "-vettool=" + self}
	if disable != "" {
		args = append(args, "-perdure.disable="+disable)
	}
	if !warnings {
		args = append(args, "-perdure.warnings=false")
	}
	if json {
		args = append(args, "-json")
	}
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	return append(args, packages...)
}

// runVet runs the go command, which runs this program for each package.
func runVet(ctx context.Context, env *cli.Env, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the user names the packages
	cmd.Stdout, cmd.Stderr = env.Stdout, env.Stderr
	err := cmd.Run()
	if _, ran := errors.AsType[*exec.ExitError](err); ran {
		return &cli.ExitError{Code: cli.CodeError} // the go command has printed the error
	}
	if err != nil {
		return fmt.Errorf("run the go command: %w", err)
	}
	return nil
}
