package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

// deadFlags select dead letters.
type deadFlags struct {
	queue, reason, instance string
	all, dryRun, yes, force bool
}

// deadLetters is what list prints with --json.
type deadLetters struct {
	DeadLetters []httpapi.DeadLetter     `json:"deadLetters"`
	Queues      []client.DeadLetterCount `json:"queues"`
}

// deadResult is what redrive and drop print with --json.
type deadResult struct {
	Done     int64    `json:"done"`
	Kept     int64    `json:"kept"`
	Later    int64    `json:"later,omitempty"`
	Failed   int64    `json:"failed"`
	Sent     []string `json:"sent,omitempty"`
	Complete bool     `json:"complete"`
}

// deadVerbs makes the verbs about dead letters.
type deadVerbs struct{ *command }

func deadVerb(c *command) *cobra.Command {
	cmd := choice(&cobra.Command{
		Use: "dead", Short: "Show, redrive and drop dead letters",
		Long: `Show, redrive and drop dead letters: records that could not be read or handled, or that were
delivered too often. Each queue of a hub has its own.

  poison:      its code took the process down again and again. The failure is in history, or the
               instance is blocked with the input kept: fix the cause, then drop it
  corrupt:     the history could not be read. This is the only copy: redrive it once it can be
  picked up:   it was moved here by SQS, and the hub has sent it again: find out why, then drop it
  (none)       SQS moved it here after 100 deliveries: the hub's watch sends it again within minutes
  other        this release cannot read it: redrive it when one that can is deployed`,
		Example: `  perdure dead list
  perdure dead show 5fea7756-0ea4-451a-a703-a558b933e274
  perdure dead redrive --reason corrupt: --instance order-7
  perdure dead drop --reason poison: --dry-run`,
	})
	d := &deadVerbs{c}
	cmd.AddCommand(d.listVerb(), d.showVerb(), d.redriveVerb(), d.dropVerb())
	return cmd
}

func (f *deadFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.queue, "queue", "", "only those of this queue: inbox, timers or a work queue")
	flags.StringVar(&f.reason, "reason", "", "only those whose reason begins so, such as corrupt:")
	flags.StringVar(&f.instance, "instance", "", "only those about this instance")
}

func (f *deadFlags) query(ids ...string) client.DeadLetterQuery {
	return client.DeadLetterQuery{Queue: f.queue, Reason: f.reason, InstanceID: f.instance, IDs: ids}
}

func (f *deadFlags) selects() bool {
	return f.queue != "" || f.reason != "" || f.instance != "" || f.all
}

func (c *deadVerbs) listVerb() *cobra.Command {
	var f deadFlags
	limit := 0
	cmd := c.verb("list", "List dead letters", "", func(ctx context.Context, cl *client.Client, _ string) error {
		if err := checkLimit(limit); err != nil {
			return err
		}
		found, err := cl.DeadLetters(ctx, f.query(), limit)
		if err != nil {
			return err
		}
		counts, err := cl.CountDeadLetters(ctx)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(deadLetters{DeadLetters: printable(found.Items), Queues: counts})
		}
		if err := c.print(deadTable(found.Items)); err != nil {
			return err
		}
		c.count(counts, len(found.Items))
		return nil
	})
	cmd.Long = cmd.Short + `.

SQS has no order of dead letters and no pages: what is listed is received, and made visible again
at the end. Those that somebody else has received are not listed: the watch hides them for a
minute, every two minutes. Of the inbox's, no more than ten of one instance are listed. How many
there are in all is printed beside the list.`
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most this many, up to 1000")
	return cmd
}

// count prints how many dead letters there are, where the list does not show all of them.
func (c *deadVerbs) count(counts []client.DeadLetterCount, shown int) {
	all := 0
	var parts []string
	for _, n := range counts {
		if here := n.Visible + n.Hidden; here > 0 {
			all += here
			parts = append(parts, fmt.Sprintf("%s about %d", clean(n.Queue), here))
		}
	}
	if all > shown {
		fmt.Fprintf(c.err, "dead letters in all: %s. Some may be hidden for a minute by the watch\n", strings.Join(parts, ", "))
	}
}

func (c *deadVerbs) showVerb() *cobra.Command {
	cmd := c.verb("show DEAD-LETTER", "Show a dead letter with its body", "DEAD-LETTER", func(ctx context.Context, cl *client.Client, id string) error {
		found, err := cl.DeadLetters(ctx, client.DeadLetterQuery{IDs: []string{id}}, 1)
		if err != nil {
			return err
		}
		if len(found.Items) == 0 {
			return noDeadLetter(id)
		}
		letter := &found.Items[0]
		if c.json {
			return c.printJSON(httpapi.WithBody(letter))
		}
		return c.print(deadText(letter))
	})
	return cmd
}

func noDeadLetter(id string) error {
	return &exit{exitError, fmt.Sprintf("no dead letter %s is visible: perdure dead list shows those there are, and the watch hides those that it looks at for a minute", clean(id))}
}

func (c *deadVerbs) redriveVerb() *cobra.Command {
	var f deadFlags
	cmd := c.action("redrive", "Send dead letters to their queues again", &f, func(ctx context.Context, cl *client.Client, q client.DeadLetterQuery) (client.DeadLetterResult, error) {
		if f.force {
			return cl.RedriveDeadLetters(ctx, q, client.ForceRedrive())
		}
		return cl.RedriveDeadLetters(ctx, q)
	})
	cmd.Long = cmd.Short + `, by their ids or by a filter.

Each is sent as a new record, and then deleted. Should this tool die half way, none is lost, and
the same call redrives what is left: within five minutes of the first nothing counts twice, and
later only an event without an id may. Dead letters that begin with poison: or picked up: are kept, since what they carry is in
history or was sent again; with --force they are redriven too, and an event may be applied twice.`
	cmd.Flags().BoolVar(&f.force, "force", false, "also those that begin with poison: or picked up:")
	return cmd
}

func (c *deadVerbs) dropVerb() *cobra.Command {
	var f deadFlags
	cmd := c.action("drop", "Delete dead letters for good", &f, func(ctx context.Context, cl *client.Client, q client.DeadLetterQuery) (client.DeadLetterResult, error) {
		return cl.DropDeadLetters(ctx, q)
	})
	cmd.Long = cmd.Short + `, by their ids or by a filter.

One that begins with corrupt:, or has no reason, is the only copy of its message.`
	return cmd
}

// action makes a verb that deals with dead letters: those whose ids are given, or those that flags select.
func (c *deadVerbs) action(
	name, short string, f *deadFlags, act func(ctx context.Context, cl *client.Client, q client.DeadLetterQuery) (client.DeadLetterResult, error),
) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " [DEAD-LETTER...]", Short: short, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := noneEmpty(cmd, "queue", "reason", "instance"); err != nil {
				return err
			}
			switch {
			case len(ids) > 0 && f.selects():
				return fmt.Errorf("ids or a filter, not both: see %s --help", cmd.CommandPath())
			case len(ids) == 0 && !f.selects():
				return fmt.Errorf("ids or a filter are wanted, such as --reason, or --all: see %s --help", cmd.CommandPath())
			}
			cl, err := c.open(cmd.Context(), c.hub)
			if err != nil {
				return &openError{err}
			}
			goOn, err := c.preview(cmd.Context(), cl, name, f, ids)
			if err != nil || !goOn {
				return err
			}
			done, err := act(cmd.Context(), cl, f.query(ids...))
			return c.done(name, ids, done, err)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "all, where nothing else selects")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print those that are visible, at most 1000, and change nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

// deadSample is how many dead letters are shown before a person confirms.
const deadSample = 10

// preview shows what is selected, and asks.
func (c *deadVerbs) preview(ctx context.Context, cl *client.Client, name string, f *deadFlags, ids []string) (goOn bool, err error) {
	if f.yes && !f.dryRun {
		return true, nil
	}
	limit := deadSample
	if f.dryRun {
		limit = client.MaxPage
	}
	found, err := cl.DeadLetters(ctx, f.query(ids...), max(limit, min(len(ids), client.MaxPage)))
	if err != nil {
		return false, err
	}
	counts, err := cl.CountDeadLetters(ctx)
	if err != nil {
		return false, err
	}

	switch {
	case f.dryRun && c.json:
		return false, c.printJSON(deadLetters{DeadLetters: printable(found.Items), Queues: counts})
	case f.dryRun:
		return false, c.print(deadTable(found.Items))
	}
	fmt.Fprintln(c.err, strings.TrimSuffix(deadTable(found.Items), "\n"))
	c.count(counts, len(found.Items))
	if !c.confirmed(provider.Operation(name)) {
		return false, errNotConfirmed
	}
	return true, nil
}

// done prints what came of it.
func (c *deadVerbs) done(name string, ids []string, done client.DeadLetterResult, err error) error {
	if c.json {
		if printed := c.printJSON(deadResult(done)); printed != nil {
			return printed
		}
		if err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %d done, %d failed: %w", name, done.Done, done.Failed, err)
	case len(ids) == 1 && done.Done+done.Kept == 0:
		return noDeadLetter(ids[0])
	case int64(len(ids)) > done.Done+done.Kept:
		return &exit{exitError, fmt.Sprintf("%d of %d are not visible: perdure dead list shows those there are, and the watch hides those that it looks at for a minute", int64(len(ids))-done.Done-done.Kept, len(ids))}
	case !done.Complete:
		return &exit{exitError, fmt.Sprintf("%s: %d done, and there may be more: do it again", name, done.Done)}
	case c.json:
		return nil
	}
	if done.Kept > 0 {
		fmt.Fprintf(c.err, "%d are kept: what they carry is in history, or was sent again (--force redrives them, perdure dead drop deletes them)\n", done.Kept)
	}
	if done.Later > 0 {
		fmt.Fprintf(c.err, "%d have come since, and are left alone: what was redriven and has failed again is among them\n", done.Later)
	}
	return c.print(strconv.FormatInt(done.Done, 10) + "\n")
}

func printable(found []client.DeadLetter) []httpapi.DeadLetter {
	all := make([]httpapi.DeadLetter, len(found))
	for i := range found {
		all[i] = httpapi.NewDeadLetter(&found[i])
	}
	return all
}

func deadTable(found []client.DeadLetter) string {
	t := table{header: []string{"QUEUE", "DEAD LETTER", "SENT", "INSTANCE", "WHAT", "REASON"}}
	for i := range found {
		d := &found[i]
		t.add(clean(d.Queue), clean(d.Record.ID), sentAt(d), excerpt(d.About.InstanceID, longestName), excerpt(what(d), longestName), excerpt(reasonOf(d), 2*longestName))
	}
	return t.String()
}

func sentAt(d *client.DeadLetter) string {
	if d.SentAt.IsZero() {
		return ""
	}
	return moment(d.SentAt)
}

// what says what a dead letter is.
func what(d *client.DeadLetter) string {
	about := &d.About
	switch {
	case about.ActivityID > 0 && about.Name != "":
		return fmt.Sprintf("activity %s #%d", about.Name, about.ActivityID)
	case about.Kind == "" && about.TimerID > 0:
		return fmt.Sprintf("timer #%d", about.TimerID)
	case about.Name != "":
		return string(about.Kind) + " " + about.Name
	default:
		return string(about.Kind)
	}
}

func reasonOf(d *client.DeadLetter) string {
	if d.Reason == "" {
		return "(none: SQS moved it here, the watch sends it again)"
	}
	return d.Reason
}

func deadText(d *client.DeadLetter) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s %s\n", name, oneLine(value))
		}
	}
	line("Dead letter", d.Record.ID)
	line("Queue", d.Queue)
	line("Reason", reasonOf(d))
	line("Sent", sentAt(d))
	line("Deliveries", strconv.Itoa(d.Record.ReceiveCount))
	line("Instance", d.About.InstanceID)
	line("Execution", d.About.ExecutionID)
	line("What", what(d))

	var body bytes.Buffer
	if err := json.Indent(&body, []byte(d.Record.Body), "", "  "); err != nil {
		return b.String() + clean(d.Record.Body) + "\n"
	}
	for text := range strings.Lines(body.String()) {
		b.WriteString(clean(strings.TrimSuffix(text, "\n")) + "\n")
	}
	return b.String()
}
