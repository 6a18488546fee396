package instances

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/jobfilter"
)

// Purge returns the command purge.
func Purge(env *cli.Env) *cobra.Command {
	var force, children bool
	cmd := env.ClientCommand("purge [ID]", "Delete instances", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			var opts []client.PurgeOption
			if force {
				opts = append(opts, client.Force())
			}
			if children {
				opts = append(opts, client.WithChildren())
			}
			return cl.Purge(ctx, id, opts...) // no output with --json: the HTTP response has no body
		})
	cmd.Long = cmd.Short + `.

The command deletes an instance that has ended, and its history. The ID is then free for another start. With
--with-children, it first deletes all descendants that have ended. With --force, it first terminates a running
instance. The hub finishes an interrupted purge within minutes. Repeat an interrupted purge with
--with-children.`
	cmd.Example = `  perdure purge order-7
  perdure purge order-7 --with-children
  perdure purge order-7 --force`
	cmd.Long += jobfilter.Help("purges")
	cmd.Example += `
  perdure purge --name fulfil --status Completed --older-than 30d --dry-run`
	cmd.Flags().BoolVar(&force, "force", false, "termination of running instances before the purge")
	cmd.Flags().BoolVar(&children, "with-children", false, "deletion of all descendants that have ended")
	jobfilter.Add(env, cmd, admin.OperationPurge, func(b *admin.JobRequest) { b.Force = force })
	flagvalue.RequireID(cmd, "with-children", "; use --parent to select the children of an instance")
	return cmd
}
