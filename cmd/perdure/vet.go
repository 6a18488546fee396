package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/analysis"
)

func vetVerb(c *command) *cobra.Command {
	var disable string
	var warnings bool
	cmd := &cobra.Command{
		Use: "vet [PACKAGE...]", Short: "Find mistakes in orchestrations before they run",
		Long: `Find mistakes in orchestrations before they run: what differs at each replay, waits for what is not in history, or loses what was asked for.

It looks at the packages of the module in this directory, ./... by default, and needs the go command. Each finding is a line on stderr, or with --json a
document of "go vet -json" on stdout. docs/linter.md has the rules. The exit code is 0 when nothing is found, and with --json; 1 when something is found, or
the packages do not build.`,
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
			return runVet(cmd.Context(), c, vetArgs(self, disable, warnings, c.json, args))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&disable, "disable", "", "rules that are not reported, separated by commas")
	flags.BoolVar(&warnings, "warnings", true, "report what may be right as well")
	return cmd
}

// vetArgs are the arguments of the go command.
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
func runVet(ctx context.Context, c *command, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the packages are what the caller of this program asks for
	cmd.Stdout, cmd.Stderr = c.out, c.err
	err := cmd.Run()
	if _, ran := errors.AsType[*exec.ExitError](err); ran {
		return &exit{code: exitError} // it has said why
	}
	if err != nil {
		return fmt.Errorf("perdure vet needs the go command: %w", err)
	}
	return nil
}
