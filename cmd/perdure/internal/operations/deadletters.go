package operations

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

// deadLetterFlags are the flags that select dead letters.
type deadLetterFlags struct {
	queue, reason, instance string
	all, dryRun, yes, force bool
}

// DeadLetterList is the --json output of dead-letters list.
type DeadLetterList struct {
	DeadLetters []httpapi.DeadLetter    `json:"deadLetters"`
	Queues      []admin.DeadLetterCount `json:"queues"`
}

// deadLetterResult is the --json output of redrive and drop.
type deadLetterResult struct {
	Done           int64    `json:"done"`
	Skipped        int64    `json:"kept"`
	TooRecent      int64    `json:"later,omitempty"`
	Failed         int64    `json:"failed"`
	SentNotDeleted []string `json:"sent,omitempty"`
	Complete       bool     `json:"complete"`
}

// deadLetterCommands has the subcommands of dead-letters.
type deadLetterCommands struct{ *cli.Env }

// DeadLetters returns the command dead-letters.
func DeadLetters(env *cli.Env) *cobra.Command {
	cmd := cli.WithSubcommands(&cobra.Command{
		Use: "dead-letters", Short: "Manage dead letters",
		Long: `Manage dead letters.

A dead letter is a record that could not be processed. Each queue of a hub has its own dead-letter queue.
The reason of a dead letter determines the fix:

  ` + provider.ReasonPoison + `      The message repeatedly ended the process. The failure is in the history, or the
               instance is blocked and the message is parked. Fix the cause, then drop the dead letter.
  corrupt:     The history is unreadable, and the dead letter is the only copy. Redrive it when the
               history is readable.
  ` + provider.ReasonRecovered + `   SQS moved the message here, and the hub resent it. Find the cause, then
               drop the dead letter.
  (none)       SQS moved the message here after 100 deliveries. The sweeper resends it within minutes.
  other        This release cannot read the message. Deploy a release that can, then redrive it.`,
		Example: `  perdure dead-letters list
  perdure dead-letters show 5fea7756-0ea4-451a-a703-a558b933e274
  perdure dead-letters redrive --reason corrupt: --instance order-7
  perdure dead-letters drop --reason ` + provider.ReasonPoison + ` --dry-run`,
	})
	d := &deadLetterCommands{env}
	cmd.AddCommand(d.list(), d.show(), d.redrive(), d.drop())
	return cmd
}

func (f *deadLetterFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "queue of the dead letters: inbox, timers or a work queue")
	flags.StringVar(&f.reason, "reason", "", "prefix of the reason, such as corrupt:")
	flags.StringVar(&f.instance, "instance", "", "ID of the instance of the dead letters")
}

func (f *deadLetterFlags) query(ids ...string) admin.DeadLetterQuery {
	return admin.DeadLetterQuery{Queue: f.queue, ReasonPrefix: f.reason, InstanceID: f.instance, IDs: ids}
}

func (f *deadLetterFlags) selects() bool {
	return f.queue != "" || f.reason != "" || f.instance != "" || f.all
}

func (c *deadLetterCommands) list() *cobra.Command {
	var f deadLetterFlags
	limit := 0
	cmd := c.AdminCommand("list", "List dead letters", "", func(ctx context.Context, a *admin.Client, _ string) error {
		if err := flagvalue.CheckLimit(limit); err != nil {
			return err
		}
		found, err := readDeadLetters(ctx, a, f.query(), limit)
		if err != nil {
			return err
		}
		if err := c.PrintResult(found.list(), DeadLetterTable(found.letters)); err != nil {
			return err
		}
		if !c.JSON {
			c.printCounts(found)
		}
		return nil
	})
	cmd.Long = cmd.Short + `.

The command receives the dead letters from SQS, and makes them visible again at the end. The list has no order
and no pages. It omits dead letters that another process has received. The sweeper receives all of them every
two minutes, and makes them visible again after its check. The list has at most ten dead letters per instance in
the inbox. If it is incomplete, the command prints the total on stderr.`
	cmd.Example = "  perdure dead-letters list --queue inbox --reason corrupt:"
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, flagvalue.LimitUsage)
	return cmd
}

// foundDeadLetters are the dead letters that match a query, and the counts of all dead letters.
type foundDeadLetters struct {
	letters []admin.DeadLetter
	counts  []admin.DeadLetterCount
}

func readDeadLetters(
	ctx context.Context, a *admin.Client, q admin.DeadLetterQuery, limit int,
) (found foundDeadLetters, err error) {
	letters, err := a.DeadLetters(ctx, q, limit)
	if err != nil {
		return found, err
	}
	found.letters = letters.Items
	found.counts, err = a.CountDeadLetters(ctx)
	return found, err
}

func (f *foundDeadLetters) list() DeadLetterList {
	return DeadLetterList{DeadLetters: DeadLetterItems(f.letters), Queues: f.counts}
}

// printCounts prints the number of dead letters if the list does not show all of them.
func (c *deadLetterCommands) printCounts(found foundDeadLetters) {
	all := 0
	var parts []string
	for _, n := range found.counts {
		if here := n.Visible + n.InFlight; here > 0 {
			all += here
			parts = append(parts, fmt.Sprintf("%s about %d", term.Clean(n.Queue), here))
		}
	}
	if all > len(found.letters) {
		fmt.Fprintf(c.Stderr, "total dead letters: %s; the sweeper may hide some for a minute\n",
			strings.Join(parts, ", "))
	}
}

func (c *deadLetterCommands) show() *cobra.Command {
	cmd := c.AdminCommand("show DEAD-LETTER", "Show a dead letter and its body", "DEAD-LETTER",
		func(ctx context.Context, a *admin.Client, id string) error {
			found, err := a.DeadLetters(ctx, admin.DeadLetterQuery{IDs: []string{id}}, 1)
			if err != nil {
				return err
			}
			if len(found.Items) == 0 {
				return notFound(id)
			}
			letter := &found.Items[0]
			return c.PrintResult(httpapi.NewDeadLetterWithBody(letter), deadLetterText(letter))
		})
	cmd.Example = "  perdure dead-letters show 5fea7756-0ea4-451a-a703-a558b933e274"
	return cmd
}

func notFound(id string) error {
	return cli.Exitf(cli.CodeError, "dead letter %s not found; see perdure dead-letters list, "+
		"and retry in a minute because the sweeper may hide it", term.Clean(id))
}

func (c *deadLetterCommands) redrive() *cobra.Command {
	var f deadLetterFlags
	redrive := func(ctx context.Context, a *admin.Client, q admin.DeadLetterQuery) (admin.DeadLetterResult, error) {
		if f.force {
			return a.RedriveDeadLetters(ctx, q, admin.ForceRedrive())
		}
		return a.RedriveDeadLetters(ctx, q)
	}
	cmd := c.action("redrive", "Send dead letters to their queues again", &f, redrive)
	cmd.Long = cmd.Short + `.

Select dead letters by ID or by filter. The command sends each one as a new record, then deletes it. If the
command is interrupted, repeat it: no message is lost. After five minutes, a repeated event without an event ID
may take effect twice. The command skips the reasons ` + provider.ReasonPoison + ` and ` +
		provider.ReasonRecovered + `, because the history has the message or the hub
resent it. --force includes them, and an event may then take effect twice.`
	cmd.Example = `  perdure dead-letters redrive 5fea7756-0ea4-451a-a703-a558b933e274
  perdure dead-letters redrive --reason corrupt: --instance order-7`
	cmd.Flags().BoolVar(&f.force, "force", false,
		"also redrive dead letters that are in the history or were resent")
	return cmd
}

func (c *deadLetterCommands) drop() *cobra.Command {
	var f deadLetterFlags
	drop := func(ctx context.Context, a *admin.Client, q admin.DeadLetterQuery) (admin.DeadLetterResult, error) {
		return a.DropDeadLetters(ctx, q)
	}
	cmd := c.action("drop", "Delete dead letters", &f, drop)
	cmd.Long = cmd.Short + `.

Select dead letters by ID or by filter. Deleted dead letters cannot be restored. A dead letter with the
reason corrupt:, or without a reason, is the only copy of its message.`
	cmd.Example = "  perdure dead-letters drop --reason " + provider.ReasonPoison + " --dry-run"
	return cmd
}

// action returns a command that processes the dead letters with the given IDs, or the dead letters that the flags
// select.
func (c *deadLetterCommands) action(
	name, short string, f *deadLetterFlags,
	act func(ctx context.Context, a *admin.Client, q admin.DeadLetterQuery) (admin.DeadLetterResult, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " [DEAD-LETTER...]", Short: short, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := flagvalue.RejectEmpty(cmd, "queue", "reason", "instance"); err != nil {
				return err
			}
			switch {
			case len(ids) > 0 && f.selects():
				return fmt.Errorf("specify IDs or a filter, not both; see %s --help", cmd.CommandPath())
			case len(ids) == 0 && !f.selects():
				return fmt.Errorf("specify IDs, a filter such as --reason, or --all; see %s --help", cmd.CommandPath())
			}
			h, err := c.Open(cmd.Context())
			if err != nil {
				return err
			}
			confirmed, err := c.preview(cmd.Context(), h.Admin, name, f, ids)
			if err != nil || !confirmed {
				return err
			}
			done, err := act(cmd.Context(), h.Admin, f.query(ids...))
			return c.done(name, ids, done, err)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all dead letters, if no other filter is set")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "preview of at most 1000 visible dead letters, without changes")
	cmd.Flags().BoolVar(&f.yes, "yes", false, flagvalue.YesUsage)
	return cmd
}

// previewSample is the maximum number of dead letters that a preview shows before the confirmation prompt.
const previewSample = 10

// preview prints the selected dead letters and asks for a confirmation. With --dry-run it only prints them.
func (c *deadLetterCommands) preview(
	ctx context.Context, a *admin.Client, name string, f *deadLetterFlags, ids []string,
) (confirmed bool, err error) {
	if f.yes && !f.dryRun {
		return true, nil
	}
	limit := previewSample
	if f.dryRun {
		limit = client.MaxPageSize
	}
	found, err := readDeadLetters(ctx, a, f.query(ids...), max(limit, min(len(ids), client.MaxPageSize)))
	if err != nil {
		return false, err
	}
	if f.dryRun {
		return false, c.PrintResult(found.list(), DeadLetterTable(found.letters))
	}
	_, _ = fmt.Fprint(c.Stderr, DeadLetterTable(found.letters))
	c.printCounts(found)
	err = c.Confirm(ctx, provider.Operation(name))
	return err == nil, err
}

// done prints the result of an action. If the action is incomplete, it returns an error.
func (c *deadLetterCommands) done(name string, ids []string, done admin.DeadLetterResult, err error) error {
	if c.JSON {
		if printed := c.PrintJSON(deadLetterResult(done)); printed != nil {
			return printed
		}
		if err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %d done, %d failed: %w", name, done.Done, done.Failed, err)
	case len(ids) == 1 && done.Done+done.Skipped == 0:
		return notFound(ids[0])
	case int64(len(ids)) > done.Done+done.Skipped:
		return cli.Exitf(cli.CodeError, "%d of %d dead letters not found; see perdure dead-letters list, "+
			"and retry in a minute because the sweeper may hide them", int64(len(ids))-done.Done-done.Skipped, len(ids))
	case !done.Complete:
		return cli.Exitf(cli.CodeError, "%s: %d done, but more may remain; repeat the command", name, done.Done)
	case c.JSON:
		return nil
	}
	if done.Skipped > 0 {
		fmt.Fprintf(c.Stderr, "%d skipped, because they are in the history or were sent again; "+
			"use --force to redrive them, or perdure dead-letters drop to delete them\n", done.Skipped)
	}
	if done.TooRecent > 0 {
		fmt.Fprintf(c.Stderr, "%d skipped, because they arrived after the command started; "+
			"they include redriven dead letters that failed again\n", done.TooRecent)
	}
	return c.Print(term.Number(done.Done) + "\n")
}
