package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

type reconcileFlags struct {
	lookback          string
	afterRestore, yes bool
	how               admin.ReconcileOptions
}

// Defaults of flags.
const (
	defaultLookback    = "14d"
	defaultConcurrency = 32
)

// next returns the command that continues this one. where contains the flags for its position. The command has the
// other flags of this one, except --after-restore, which would delete the messages that this run sent.
func (f *reconcileFlags) next(env *cli.Env, where ...string) string {
	args := []string{"reconcile"}
	if f.lookback != defaultLookback {
		args = append(args, "--lookback", f.lookback)
	}
	if f.how.Concurrency != defaultConcurrency {
		args = append(args, "--concurrency", strconv.Itoa(f.how.Concurrency))
	}
	if f.yes {
		args = append(args, "--yes")
	}
	if env.JSON {
		args = append(args, "--json")
	}
	return env.CommandLine(append(args, where...))
}

// Reconcile returns the command reconcile.
func Reconcile(env *cli.Env) *cobra.Command {
	var f reconcileFlags
	cmd := env.AdminCommand("reconcile", "Resend lost messages and timers", "",
		func(ctx context.Context, a *admin.Client, _ string) error {
			return reconcile(ctx, env, a, &f)
		})
	cmd.Long = cmd.Short + `.

Use this command after queues lost messages or were replaced, or after a table restore. It resends pending
work: work items, timers, retries, child starts and messages to other instances. Completed work does not run
again, but running work may run twice. If queues lost messages and still exist, wait six minutes first.

After a table restore (docs/operate/runbooks.md has the whole procedure):
  1. Pause the hub, and wait until its functions are idle.
  2. Drop the dead letters.
  3. Use --after-restore, with --lookback set to the age of the restored state plus 14 days.`
	cmd.Example = `  perdure reconcile
  perdure reconcile --after-restore --lookback 17d
  perdure reconcile --instance order-7 --instance order-8`
	cmd.Flags().BoolVar(&f.afterRestore, "after-restore", false,
		"delete all messages and timer schedules first, for a restored table")
	cmd.Flags().StringVar(&f.lookback, "lookback", defaultLookback,
		"maximum age of detached starts and events to resend, up to 28d")
	cmd.Flags().IntVar(&f.how.Concurrency, "concurrency", defaultConcurrency,
		"number of instances to process concurrently, up to 256")
	cmd.Flags().StringVar(&f.how.Cursor, "cursor", "", "position at which an earlier run stopped")
	cmd.Flags().StringArrayVar(&f.how.Instances, "instance", nil,
		"ID of an instance to reconcile; repeatable (default: all)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, flagvalue.YesUsage)
	return cmd
}

func reconcile(ctx context.Context, env *cli.Env, a *admin.Client, f *reconcileFlags) error {
	lookback, err := days.Parse(f.lookback)
	if err != nil {
		return &provider.FieldError{Field: "--lookback", Problem: "is " + err.Error()}
	}
	f.how.Lookback = lookback
	if f.afterRestore && f.how.Cursor != "" {
		return errors.New("--after-restore deletes the messages of the earlier run; do not use it with --cursor")
	}
	if f.afterRestore && len(f.how.Instances) > 0 {
		return errors.New("--after-restore deletes the messages of all instances; do not use it with --instance")
	}
	if f.afterRestore {
		if err := checkPaused(ctx, env); err != nil {
			return err
		}
	}
	if !f.yes {
		fmt.Fprintf(env.Stderr, "hub %s: messages and timers are resent; work in progress may run twice\n",
			term.Clean(env.HubName))
		if f.afterRestore {
			fmt.Fprintln(env.Stderr, "all messages in its queues and all schedules of its timers are deleted first")
		}
		if err := env.Confirm(ctx, "reconcile"); err != nil {
			return err
		}
	}

	f.how.OnStall = func(w admin.Stall) { fmt.Fprintln(env.Stderr, waitingText(w.Service, w.Elapsed)) }
	if f.afterRestore {
		if err := purgeQueues(ctx, env, a, f); err != nil {
			return err
		}
	}
	f.how.OnProgress = func(result admin.ReconcileResult) {
		from := ""
		if result.Cursor != "" {
			from = "; to continue from here: --cursor " + term.ShellQuote(result.Cursor)
		}
		fmt.Fprintf(env.Stderr, "%d instances, %d waiting for a retry, %d failed%s\n",
			result.Instances, result.Deferred, result.Failed, from)
	}
	result, err := a.Reconcile(ctx, f.how)
	err = flagvalue.AsFlag(flagvalue.AsFlag(err, "lookback", "--lookback"), "concurrency", "--concurrency")
	return printReconciled(env, f, result, err)
}

// checkPaused returns an error if the functions or the sweeper of the hub are not paused, because accepted messages
// would be deleted. The user may also have specified the wrong hub.
func checkPaused(ctx context.Context, env *cli.Env) error {
	h, err := env.OpenDeployment(ctx, env.HubName)
	if err != nil {
		return &cli.OpenError{Cause: err}
	}
	var mappings []hubadmin.Mapping
	p := retrybudget.New(h.Now, h.Sleep, func(soFar time.Duration, _ error) {
		fmt.Fprintln(env.Stderr, waitingText("Lambda, EventBridge or SQS", soFar))
	})
	err = p.Do(ctx, hubadmin.IsTransient, func() (err error) {
		mappings, err = h.Mappings(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("check that hub %q is paused: %w; nothing was deleted", env.HubName, err)
	}
	for i := range mappings {
		if m := &mappings[i]; m.State != "Disabled" {
			return cli.Exitf(cli.CodeError, "hub %q is not paused (%s of function %s is %s), and nothing was deleted; "+
				"if its table was restored, run perdure pause --hub %s first",
				env.HubName, m.UUID, m.Function, m.State, term.ShellQuote(env.HubName))
		}
	}
	return nil
}

// scheduleReportInterval is the number of deleted schedules between two progress lines, about half a minute.
const scheduleReportInterval = 10_000

// waitingText is the progress line while calls of a service fail and are retried.
func waitingText(service string, soFar time.Duration) string {
	minutes := "1 minute"
	if n := int(soFar / time.Minute); n != 1 {
		minutes = fmt.Sprintf("%d minutes", n)
	}
	return fmt.Sprintf("waiting for %s, %s so far", cmp.Or(service, "AWS"), minutes)
}

// purgeQueues deletes the messages and timer schedules that do not belong to the restored table.
func purgeQueues(ctx context.Context, env *cli.Env, a *admin.Client, f *reconcileFlags) error {
	again := f.next(env, "--after-restore")
	fmt.Fprintf(env.Stderr, "checking the queues for over a minute, then deleting messages and timer schedules; "+
		"nothing is sent for %v after that\n",
		provider.QueuePurgeCooldown)
	reported := 0
	report := func(purged provider.QueuePurgeResult) {
		if purged.Schedules/scheduleReportInterval > reported {
			reported = purged.Schedules / scheduleReportInterval
			fmt.Fprintf(env.Stderr, "%d schedules deleted so far\n", purged.Schedules)
		}
	}
	purged, err := a.PurgeQueues(ctx, admin.OnStall(f.how.OnStall), admin.OnProgress(report))
	if errors.Is(err, provider.ErrBusy) {
		return cli.Exitf(cli.CodeError, "%v; pause the hub (perdure pause), stop polling processes, "+
			"wait until all messages are processed, and drop the dead letters (perdure dead-letters drop); "+
			"then run %s", err, again)
	}
	if err != nil {
		return cli.Exitf(cli.CodeError, "%v; start again with %s", err, again)
	}
	messages := 0
	for _, n := range purged.Messages {
		messages += n
	}
	fmt.Fprintf(env.Stderr, "deleted: about %d messages, %d schedules\n", messages, purged.Schedules)
	return nil
}

func printReconciled(env *cli.Env, f *reconcileFlags, result admin.ReconcileResult, err error) error {
	if err != nil && result.Instances == 0 && result.Cursor == "" && !f.afterRestore {
		return err // the run failed before the first instance
	}
	next := func(where ...string) string { return f.next(env, where...) }
	if printed := env.PrintResult(result, reconciledText(result, next)); printed != nil {
		return printed
	}
	if len(f.how.Instances) > 0 && result.NotFound > 0 {
		fmt.Fprintf(env.Stderr, "%d of the specified instances not found; run perdure list to see all instances\n",
			result.NotFound)
	}
	return f.continueError(env, result, err)
}

// continueError returns the error of a run that stopped, with the command that continues it.
func (f *reconcileFlags) continueError(env *cli.Env, result admin.ReconcileResult, err error) error {
	fromCursor := f.next(env, "--cursor", result.Cursor)
	switch {
	case err == nil:
		return nil
	case result.Cursor != "" && errors.Is(err, context.Canceled):
		return &cli.ExitError{Code: cli.CodeError, Text: "interrupted; continue with " + fromCursor}
	case result.Cursor != "":
		return cli.Exitf(cli.CodeError, "%v; continue with %s", err, fromCursor)
	case len(f.how.Instances) == 0 && (errors.Is(err, context.Canceled) || result.Failed == 0):
		return cli.Exitf(cli.CodeError, "%v; start again with %s", err, f.next(env))
	default:
		return err
	}
}

// reconciledText returns the summary of a run. next returns the command that processes the remaining instances.
func reconciledText(r admin.ReconcileResult, next func(where ...string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d instances: %d not ended, %d ended within --lookback, %d ended earlier; "+
		"%d deletions finished, %d not found, %d failed\n",
		r.Instances, r.Active, r.Ended, r.EndedBeforeLookback, r.Deleted, r.NotFound, r.Failed)
	fmt.Fprintf(&b, "%d messages, work items and timers sent\n", r.Sent)
	if r.RejectedOutputs > 0 {
		fmt.Fprintf(&b, "%d outputs rejected, because their queue does not exist or they are too large; "+
			"they fail in their instances\n", r.RejectedOutputs)
	}
	if r.SkippedOutputs > 0 {
		fmt.Fprintf(&b,
			"%d detached starts and events for other instances skipped as delivered, because they are older "+
				"than --lookback (28 days for running instances)\n", r.SkippedOutputs)
	}
	if r.TruncatedInstances > 0 {
		fmt.Fprintf(&b, "%d instances continued as new more than %d times since then; "+
			"starts by earlier executions were skipped\n", r.TruncatedInstances, provider.MaxPastExecutions)
	}
	if r.LostChildren > 0 {
		fmt.Fprintf(&b, "%d children not found that were started more than 28 days ago; "+
			"their outcome is unknown, and their parents receive outcome_lost\n", r.LostChildren)
	}
	for _, e := range r.Errors {
		b.WriteString("  " + term.OneLine(e) + "\n")
	}
	if len(r.RemainingInstances) > 0 {
		fmt.Fprintf(&b, "remaining: %s%s\n",
			next(instanceFlags(r.RemainingInstances)...), omittedText(r.RemainingInstances))
	}
	return b.String()
}

// maxInstancesShown is the maximum number of remaining instances that the text output lists. The --json output has all
// of them.
const maxInstancesShown = 20

// instanceFlags returns the first remaining instances as flags of the next command.
func instanceFlags(left []string) (flags []string) {
	for _, id := range left[:min(len(left), maxInstancesShown)] {
		flags = append(flags, "--instance", id)
	}
	return flags
}

// omittedText returns the number of instances that instanceFlags omits, as a shell comment.
func omittedText(left []string) string {
	if more := len(left) - maxInstancesShown; more > 0 {
		return fmt.Sprintf(" # and %d more (--json has all)", more)
	}
	return ""
}
