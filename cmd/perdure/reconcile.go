package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/internal/patience"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// reconcileFlags say how a hub is reconciled.
type reconcileFlags struct {
	back          string
	restored, yes bool
	how           client.Reconciliation
}

// What is meant where nothing is said.
const (
	usualBack   = "14d"
	usualAtOnce = 32
)

// next returns the command that goes on where this call has stopped, with all flags that this one has but those that say where it begins:
// those are where. What was emptied is not emptied again.
func (f *reconcileFlags) next(c *command, where string) string {
	words := []string{"perdure reconcile"}
	if c.hub != defaultHub {
		words = append(words, "--hub "+shellQuoted(c.hub))
	}
	if f.back != usualBack {
		words = append(words, "--back "+shellQuoted(f.back))
	}
	if f.how.AtOnce != usualAtOnce {
		words = append(words, fmt.Sprintf("--at-once %d", f.how.AtOnce))
	}
	if f.yes {
		words = append(words, "--yes")
	}
	if c.json {
		words = append(words, "--json")
	}
	if where != "" {
		words = append(words, where)
	}
	return strings.Join(words, " ")
}

func reconcileVerb(c *command) *cobra.Command {
	var f reconcileFlags
	cmd := c.verb("reconcile", "Send again all that instances wait for, after a restore or with new queues", "", func(ctx context.Context, cl *client.Client, _ string) error {
		return reconcile(ctx, c, cl, &f)
	})
	cmd.Long = cmd.Short + `.

It goes through all instances of the table. What an instance waits for is sent again: work items,
timers (their schedules are made from these), attempts of retries, children; so is what it has
caused for others. What is settled in history does not run again; what is not may run twice.
Repeating it is harmless, and so is stopping it: go on with the --cursor that it prints.

Queues that have lost messages, and stay: wait six minutes first. SQS takes what is sent again within
five for what was lost, and deletes it too.

An instance whose calls are throttled, fail in a way that may pass, or are not answered for two minutes
is set aside, and tried again later and at the end. It waits until nothing has succeeded for an hour, and
says each minute what it waits for. What is not done by then, and what is refused for good, such as when
your session has expired, is named, and the exit code is 1: repeat these alone with --instance once the
cause is gone. The --cursor has them, too: it leads on behind what is done, and names what is not.

Detached starts of more than --back ago are taken for delivered, since what they started may have been
purged and would run again. After a restore, give the age of the second that was restored and 14 days
more, which is how long a queue keeps a message: 17d for a table of three days ago. The most is 28d.
What is left out is counted. Of what is not over, those of the last 28 days are sent in any case.

A child that is not there, and was started more than 28 days ago, does not run: it may have been over
and purged. Its parent is told that the outcome is lost (outcome_lost). A child that lives is cancelled
where the execution that waited for it was purged or has continued as new.

The table was restored to an earlier time: what the queues and schedules hold belongs to a history
that is gone, and new queues of the same names would have what the schedules send. Pause the hub,
wait until nothing is handled any more, drop the dead letters, and give --restored: all schedules and
messages of the hub are deleted first, and nothing is sent for six minutes. Senders stop before that:
what they send meanwhile may be lost. See docs/runbooks.md.

What was raised or started since the time that was restored is not in the table: it is lost, unless
those who sent it send it again.`
	cmd.Example = `  perdure reconcile
  perdure reconcile --restored --back 17d
  perdure reconcile --instance order-7 --instance order-8`
	cmd.Flags().BoolVar(&f.restored, "restored", false, "first delete all messages and schedules of the hub: they are of a history that is gone")
	cmd.Flags().StringVar(&f.back, "back", usualBack, "how far back detached starts count that may not have arrived, up to 28d")
	cmd.Flags().IntVar(&f.how.AtOnce, "at-once", usualAtOnce, "how many instances are dealt with side by side, up to 256")
	cmd.Flags().StringVar(&f.how.Cursor, "cursor", "", "go on where another call stopped")
	cmd.Flags().StringArrayVar(&f.how.Instances, "instance", nil, "these instances alone; repeatable")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	return cmd
}

func reconcile(ctx context.Context, c *command, cl *client.Client, f *reconcileFlags) error {
	back, err := days.Parse(f.back)
	if err != nil {
		return &provider.FieldError{Field: "--back", Problem: "is " + err.Error()}
	}
	f.how.Back = back
	if f.restored && f.how.Cursor != "" {
		return errors.New("--restored or --cursor, not both: what was sent since would be deleted")
	}
	if f.restored && len(f.how.Instances) > 0 {
		return errors.New("--restored or --instance, not both: what the others wait for would be deleted")
	}
	if f.restored {
		if err := atRest(ctx, c); err != nil {
			return err
		}
	}
	if !f.yes {
		fmt.Fprintf(c.err, "hub %s: what its instances wait for is sent again, and may run twice.\n", clean(c.hub))
		if f.restored {
			fmt.Fprintln(c.err, "All messages of its queues and all its schedules are deleted first.")
		}
		if !c.confirmed("reconcile") {
			return errNotConfirmed
		}
	}

	f.how.Waiting = func(w client.Waiting) { fmt.Fprintln(c.err, waitingText(w.For, w.SoFar)) }
	if f.restored {
		if err := emptyQueues(ctx, c, cl, f); err != nil {
			return err
		}
	}
	f.how.Progress = func(so client.Reconciled) {
		from := ""
		if so.Cursor != "" {
			from = "; from here on: --cursor " + shellQuoted(so.Cursor)
		}
		fmt.Fprintf(c.err, "%d instances, %d set aside, %d failed%s\n", so.Instances, so.SetAside, so.Failed, from)
	}
	so, err := cl.Reconcile(ctx, f.how)
	return reconciled(c, f, so, err)
}

// atRest returns an error where functions take messages of the hub, or its watch wakes: what was accepted would be deleted on its way. It may be
// another hub than the one that was meant.
func atRest(ctx context.Context, c *command) error {
	h, err := c.admin(ctx, c.hub)
	if err != nil {
		return &openError{err}
	}
	var mappings []hubadmin.Mapping
	p := patience.New(h.Now, h.Sleep, func(soFar time.Duration, _ error) {
		fmt.Fprintln(c.err, waitingText("Lambda, EventBridge or SQS", soFar))
	})
	err = p.Do(ctx, hubadmin.MayYetSucceed, func() (err error) {
		mappings, err = h.Mappings(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("whether hub %q is paused cannot be seen, and nothing was deleted: %w", c.hub, err)
	}
	for i := range mappings {
		if m := &mappings[i]; m.State != "Disabled" {
			return &exit{exitError, fmt.Sprintf("hub %q is not paused (%s of function %s is %s), and nothing was deleted: if it is the one whose table was restored, perdure pause --hub %s first",
				c.hub, m.UUID, m.Function, m.State, shellQuoted(c.hub))}
		}
	}
	return nil
}

// schedulesTold is after how many schedules the tool says how far it has come: half a minute's work.
const schedulesTold = 10_000

// waitingText says that calls of a service fail, and are repeated.
func waitingText(service string, soFar time.Duration) string {
	minutes := "1 minute"
	if n := int(soFar / time.Minute); n != 1 {
		minutes = fmt.Sprintf("%d minutes", n)
	}
	return fmt.Sprintf("waiting for %s, %s so far", cmp.Or(service, "AWS"), minutes)
}

// emptyQueues deletes what is of a history that is gone.
func emptyQueues(ctx context.Context, c *command, cl *client.Client, f *reconcileFlags) error {
	again := f.next(c, "--restored")
	fmt.Fprintf(c.err, "deleting messages and schedules; then nothing is sent for %v\n", provider.QuietTime)
	told := 0
	emptied, err := cl.EmptyQueues(ctx, client.OnWaiting(f.how.Waiting), client.OnEmptied(func(so provider.Emptied) {
		if so.Schedules/schedulesTold > told {
			told = so.Schedules / schedulesTold
			fmt.Fprintf(c.err, "%d schedules deleted so far\n", so.Schedules)
		}
	}))
	if errors.Is(err, provider.ErrBusy) {
		return &exit{exitError, err.Error() + ": pause the hub (perdure pause), stop processes that poll, wait until nothing is handled any more, and drop the dead letters (perdure dead drop); then " + again}
	}
	if err != nil {
		return &exit{exitError, fmt.Sprintf("%v: begin anew with %s", err, again)}
	}
	messages := 0
	for _, n := range emptied.Messages {
		messages += n
	}
	fmt.Fprintf(c.err, "deleted: about %d messages, %d schedules\n", messages, emptied.Schedules)
	return nil
}

func reconciled(c *command, f *reconcileFlags, so client.Reconciled, err error) error {
	if err != nil && so.Instances == 0 && so.Cursor == "" && !f.restored {
		return err // nothing was begun
	}
	if c.json {
		if printed := c.printJSON(so); printed != nil {
			return printed
		}
	} else if printed := c.print(reconciledText(so, func(where string) string { return f.next(c, where) })); printed != nil {
		return printed
	}
	if len(f.how.Instances) > 0 && so.Gone > 0 {
		fmt.Fprintf(c.err, "%d of the instances that --instance names are not there: perdure list shows those there are\n", so.Gone)
	}
	return f.goOn(c, so, err)
}

// goOn says how to go on where a call has stopped.
func (f *reconcileFlags) goOn(c *command, so client.Reconciled, err error) error {
	switch {
	case err == nil:
		return nil
	case so.Cursor != "" && errors.Is(err, context.Canceled):
		return &exit{exitError, "interrupted: go on with " + f.next(c, "--cursor "+shellQuoted(so.Cursor))}
	case so.Cursor != "":
		return &exit{exitError, fmt.Sprintf("%v: go on with %s", err, f.next(c, "--cursor "+shellQuoted(so.Cursor)))}
	case len(f.how.Instances) == 0 && (errors.Is(err, context.Canceled) || so.Failed == 0):
		return &exit{exitError, fmt.Sprintf("%v: begin anew with %s", err, f.next(c, ""))}
	default:
		return err
	}
}

// reconciledText says what came of all. next returns the command for those that are left.
func reconciledText(so client.Reconciled, next func(where string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d instances: %d live and were sent for and woken, %d are over and were sent for again, %d have been over for long and were, too; %d deletions finished, %d gone meanwhile, %d failed\n",
		so.Instances, so.Living, so.Over, so.Old, so.Deleted, so.Gone, so.Failed)
	fmt.Fprintf(&b, "%d messages, work items and timers were sent\n", so.Sent)
	if so.Refused > 0 {
		fmt.Fprintf(&b, "%d outputs are for queues that this hub does not have, or too large: they fail in their instances\n", so.Refused)
	}
	if so.LeftOut > 0 {
		fmt.Fprintf(&b, "%d detached starts and events for other instances are older than --back (of what lives, than 28 days), and were left out: taken for delivered\n", so.LeftOut)
	}
	if so.Cut > 0 {
		fmt.Fprintf(&b, "%d instances have continued as new more than %d times since then: what earlier executions started was left out\n", so.Cut, provider.MostPast)
	}
	if so.Lost > 0 {
		fmt.Fprintf(&b, "%d children are not there, and were started more than 28 days ago: whether they have run is not known, and their parents are told so (outcome_lost)\n", so.Lost)
	}
	for _, e := range so.Errors {
		b.WriteString("  " + oneLine(e) + "\n")
	}
	if len(so.Left) > 0 {
		fmt.Fprintf(&b, "not done: %s%s\n", next(leftText(so.Left)), moreText(so.Left))
	}
	return b.String()
}

// leftShown is how many instances are named that are not done; --json has all.
const leftShown = 20

// leftText names the first instances that are not done, as flags of the next call.
func leftText(left []string) string {
	var b strings.Builder
	for _, id := range left[:min(len(left), leftShown)] {
		b.WriteString(" --instance " + shellQuoted(id))
	}
	return b.String()[1:]
}

// moreText says how many instances leftText leaves out, as a comment of the shell.
func moreText(left []string) string {
	if more := len(left) - leftShown; more > 0 {
		return fmt.Sprintf(" # and %d more (--json has all)", more)
	}
	return ""
}
