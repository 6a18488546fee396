package operations

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

// Sweep returns the command sweep.
func Sweep(env *cli.Env) *cobra.Command {
	cmd := env.AdminCommand("sweep", "Delete unreferenced payloads", "",
		func(ctx context.Context, a *admin.Client, _ string) error {
			pages, deleted := 0, 0
			for n, err := range a.SweepPayloads(ctx) {
				if deleted += n; err != nil {
					return fmt.Errorf("%w (%d payloads deleted); run the command again", err, deleted)
				}
				if pages++; env.Interactive && pages%10 == 0 {
					fmt.Fprintf(env.Stderr, "%d pages read, %d payloads deleted\n", pages, deleted)
				}
			}
			return env.PrintResult(map[string]int{"deleted": deleted}, fmt.Sprintf("%d payloads deleted\n", deleted))
		})
	cmd.Example = `  perdure sweep
  perdure sweep --json`
	cmd.Long = cmd.Short + `.

A purge deletes the large payloads of an instance. This command deletes the payloads that remain in the
payload store after failed starts, or that were stored after a purge. It lists all objects that are at least
two days old, a thousand per call, and reads one item per execution. Run it about once a month.
The command has no preview. The hub's sweeper, which runs every two minutes, does not delete these payloads.`
	return cmd
}
