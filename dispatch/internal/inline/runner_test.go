package inline

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/dispatch/internal/messages"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// inline returns an event that schedules an inline activity.
func inline(name string) history.Event {
	return history.Event{ID: 2, Kind: history.ActivityScheduled, Name: name, Inline: true}
}

// An activity runs inline only if this build registers it, its turn does not cancel it, and the invocation tolerates a
// crash. An invocation tolerates a crash if its messages are new and it does not run alone as a suspect.
func TestSchedules_turnAndSession_determineWhetherActivitiesRunInline(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "a", func(context.Context, int) (int, error) { return 0, nil })
	cancel := history.Event{ID: 3, Kind: history.ActivityCancelRequested, SourceEventID: 2}
	end := history.Event{ID: 3, Kind: history.OrchestrationCompleted}
	queued := history.Event{ID: 2, Kind: history.ActivityScheduled, Name: "a"}
	for name, c := range map[string]struct {
		events     []history.Event
		deliveries int
		alone      bool
		disabled   bool
		want       bool
	}{
		"inline activity":        {events: []history.Event{inline("a")}, want: true},
		"another activity":       {events: []history.Event{queued}},
		"unregistered activity":  {events: []history.Event{inline("b")}},
		"cancelled in its turn":  {events: []history.Event{inline("a"), cancel}},
		"execution ends":         {events: []history.Event{inline("a"), end}},
		"message is redelivered": {events: []history.Event{inline("a")}, deliveries: 2},
		"session runs alone":     {events: []history.Event{inline("a")}, alone: true},
		"inline is disabled":     {events: []history.Event{inline("a")}, disabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := intake.NewBase(nil, func() time.Time { return time.Unix(1, 0) }, slog.New(slog.DiscardHandler))
			h := &Host{Base: base, Registry: (*registry.Registry)(r), Timeout: time.Second}
			if c.disabled {
				h.Timeout = -1
			}
			item := &provider.OrchestrationItem{Messages: []provider.InboxMessage{
				{Record: provider.Record{ReceiveCount: max(c.deliveries, 1)}},
			}}
			q := messages.NewQueue(item.Messages)
			var runner Runner
			runner.Start(t.Context(), h, item, &q, c.alone)
			if got := runner.Schedules(c.events); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if runner.Disable(); runner.Schedules(c.events) {
				t.Error("activities run inline after Disable")
			}
		})
	}
}
