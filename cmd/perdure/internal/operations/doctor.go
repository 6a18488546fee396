// Package operations contains the commands for operators of a task hub.
package operations

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// The exit codes of doctor, in addition to 0 and 1.
const (
	CodeProblems   = 2
	CodeUnverified = 3
)

// doctorResult is the --json output of doctor.
type doctorResult struct {
	Findings []hubadmin.Finding `json:"findings"`
}

// Doctor returns the command doctor.
func Doctor(env *cli.Env) *cobra.Command {
	check := func(ctx context.Context, h *hubadmin.Admin) error {
		found := h.Check(ctx)
		err := env.PrintResult(doctorResult{append([]hubadmin.Finding{}, found...)}, findingsText(found))
		return cmp.Or(err, verdictOf(found))
	}
	cmd := env.DeploymentCommand("doctor", "Check a hub's deployment", check)
	cmd.Long = cmd.Short + `.

The command checks the hub's table, queues, dead letters, event source mappings, schedule group and sweeper
rule, and the configuration, limits and roles of its functions. It checks that the deployed build has the
orchestrations of the latest 1000 instances that have not ended, that queues with work have a worker, and
that the clock of this machine is correct. For each problem it prints the impact and the fix. It changes
nothing, and reports which resources it may not read.

Exit codes:
  0  no problems
  1  the hub was not found
  2  problems were found
  3  no problems were found, but some resources could not be read`
	cmd.Example = "  perdure doctor --hub staging\n  perdure doctor --json"
	return cmd
}

func verdictOf(found []hubadmin.Finding) error {
	switch {
	case len(found) == 0:
		return nil
	case slices.ContainsFunc(found, func(f hubadmin.Finding) bool { return !f.Unverified }):
		return &cli.ExitError{Code: CodeProblems}
	default:
		return &cli.ExitError{Code: CodeUnverified}
	}
}

func findingsText(found []hubadmin.Finding) string {
	if len(found) == 0 {
		return "no problems found\n"
	}
	var b strings.Builder
	for _, f := range found {
		if f.Unverified {
			fmt.Fprintf(&b, "? %s could not be read: %s\n  fix: %s\n",
				term.OneLine(f.Resource), term.OneLine(f.Problem), f.Fix)
			continue
		}
		fmt.Fprintf(&b, "! %s: %s\n  impact: %s\n  fix: %s\n",
			term.OneLine(f.Resource), term.OneLine(f.Problem), f.Impact, term.OneLine(f.Fix))
	}
	return b.String()
}
