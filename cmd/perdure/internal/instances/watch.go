package instances

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

type watchFlags struct{ timeout, interval time.Duration }

// Watch returns the command watch.
func Watch(env *cli.Env) *cobra.Command {
	var f watchFlags
	cmd := env.ClientCommand("watch ID", "Follow an instance's events", cli.ArgID,
		func(ctx context.Context, cl *client.Client, id string) error {
			return watchInstance(ctx, env, cl, id, f)
		})
	cmd.Long = cmd.Short + `.

The command prints events until the instance ends. It starts with the current execution and follows
continue-as-new. With --json, each event is one line. The command exits like perdure wait.`
	cmd.Example = `  perdure watch order-7
  perdure watch order-7 --timeout 10m --interval 5s
  perdure watch order-7 --json | jq 'select(.kind == "ActivityFailed")'`
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, flagvalue.TimeoutUsage)
	cmd.Flags().DurationVar(&f.interval, "interval", time.Second,
		"time between two reads of the history")
	return cmd
}

func watchInstance(ctx context.Context, env *cli.Env, cl *client.Client, id string, f watchFlags) error {
	if f.interval <= 0 {
		return &provider.FieldError{
			Field: "--interval", Problem: fmt.Sprintf("must be more than 0s, is %s", f.interval),
		}
	}
	limited, cancel := flagvalue.WithTimeout(ctx, f.timeout)
	defer cancel()
	w := &watcher{Env: env, client: cl, id: id}
	end, err := w.follow(limited, f.interval)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted("watch", id)
	case err != nil && limited.Err() != nil:
		return notEnded(id, f.timeout)
	case err != nil:
		return err
	}
	status, _ := history.StatusAfter(end)
	return exitError(status)
}

// watcher prints the events of an instance as they are committed.
type watcher struct {
	*cli.Env

	client    *client.Client
	id        string
	execution string // the current execution
	log       *describe.EventLog
}

// follow prints events until the instance ends, and returns the kind of its last event. The existing events are printed
// together, so that their rows have the durations.
func (w *watcher) follow(ctx context.Context, interval time.Duration) (history.Kind, error) {
	s, err := w.client.Status(ctx, w.id)
	if err != nil {
		return "", err
	}
	w.begin(s.ExecutionID)
	of := client.WithExecutionID(s.ExecutionID)
	existing, err := client.Collect(w.client.History(ctx, w.id, of))
	if err != nil {
		return "", err
	}
	end, err := w.show(existing)
	if err != nil || end != "" {
		return end, err
	}
	last := existing[len(existing)-1].ID
	for e, err := range w.client.Follow(ctx, w.id, of, client.AfterEvent(last), client.WithPollInterval(interval)) {
		if err != nil {
			return "", err
		}
		if end, err = w.show([]history.Event{e}); err != nil {
			return "", err
		}
	}
	return end, nil
}

func (w *watcher) begin(execution string) {
	w.execution = execution
	w.log = describe.NewEventLog(nil)
}

// show prints events. It returns the kind of the last event if the instance has ended.
func (w *watcher) show(events []history.Event) (end history.Kind, err error) {
	for i := range events {
		w.log.Add(&events[i])
	}
	for i := range events {
		if err := w.print(&events[i]); err != nil {
			return "", err
		}
	}
	switch last := &events[len(events)-1]; {
	case last.Kind == history.OrchestrationContinuedAsNew:
		w.begin(last.ExecutionID)
	case last.Kind.Terminal():
		return last.Kind, nil
	}
	return "", nil
}

func (w *watcher) print(e *history.Event) error {
	if w.JSON {
		return w.PrintJSON(e)
	}
	if e.ID == 1 {
		if err := w.Print(describe.ExecutionHeader(w.execution, e) + "\n"); err != nil {
			return err
		}
	}
	return w.Print(line(w.log.Row(e)))
}

// line formats a table row without the widths of the other rows. Its columns are wide enough for most rows.
func line(cells []string) string {
	s := fmt.Sprintf("%5s  %8s  %6s  %-27s  %-16s  %s", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5])
	return strings.TrimRight(s, " ") + "\n"
}
