package schedules

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/schedule"
)

func backfillCommand(env *cli.Env) *cobra.Command {
	var from, to string
	backfill := func(ctx context.Context, cl *client.Client, id string) error {
		var w schedule.BackfillWindow
		err := cmp.Or(flagvalue.ParseTime("--from", from, &w.From), flagvalue.ParseTime("--to", to, &w.To))
		if err != nil {
			return err
		}
		return printAccepted(env, id, cl.Schedules().Backfill(ctx, id, w.From, w.To))
	}
	cmd := env.ClientCommand("backfill SCHEDULE", "Run past times of a schedule", argSchedule, backfill)
	cmd.Long = cmd.Short + `.

Times that already have a run are skipped, so the command can be repeated. The runs execute one after
another, or concurrently if the overlap policy allows it. Times that become due during a backfill run first.
perdure schedule show lists the remaining backfills.`
	cmd.Example = `  perdure schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "first time, RFC 3339")
	flags.StringVar(&to, "to", "", "last time, RFC 3339, not in the future")
	cli.CompleteFlag[string](cmd, "from")
	cli.CompleteFlag[string](cmd, "to")
	return cmd
}
