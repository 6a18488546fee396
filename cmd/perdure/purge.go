package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

func purgeVerb(c *command) *cobra.Command {
	var force, children bool
	cmd := c.verb("purge ID", "Delete an instance that is over, with its history", argID,
		func(ctx context.Context, cl *client.Client, id string) error {
			var opts []client.PurgeOption
			if force {
				opts = append(opts, client.Force())
			}
			if children {
				opts = append(opts, client.WithChildren())
			}
			return cl.Purge(ctx, id, opts...) // the HTTP API's answer has no body: --json prints none
		})
	cmd.Long = cmd.Short + `.

Its id is free then for another start. Should the deletion be interrupted, the instance is Deleting:
purge it again, or leave the rest to the task hub, which finishes it after some minutes.

Children are instances of their own, and stay. With --with-children those that are over are deleted
before it, and theirs. Should that be interrupted, the instance is there: purge it so again.

With --force it need not be over: it ends at once, without running its code. Its activities, timers
and children are cancelled, and its parent is told that it was terminated.`
	cmd.Example = `  perdure purge order-7
  perdure purge order-7 --with-children
  perdure purge order-7 --force`
	cmd.Long += `

With a filter instead of an ID the task hub purges many, in the background: perdure jobs shows how
far it is. Only what is over, unless --force is given; only what was started before now.`
	cmd.Example += `
  perdure purge --name fulfil --status Completed --older-than 30d --dry-run`
	cmd.Flags().BoolVar(&force, "force", false, "end it first if it is not over")
	cmd.Flags().BoolVar(&children, "with-children", false, "delete its children that are over before it, and theirs")
	c.bulk(cmd, client.OperationPurge, func(b *client.Bulk) { b.Force = force })
	onlyOfOne(cmd, "with-children", "; --parent ID selects the children of one")
	return cmd
}
