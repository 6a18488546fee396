package mailbox

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch/internal/execution"
	"github.com/perdure/perdure/dispatch/internal/intake"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/provider"
)

// hub lists the responses.
type hub struct {
	provider.Provider

	responses []string
}

func (h *hub) RejectCancel(context.Context, *provider.InboxMessage) error {
	h.responses = append(h.responses, "never started")
	return nil
}

func (h *hub) RejectEvents(_ context.Context, ended string, ms ...*provider.InboxMessage) error {
	h.responses = append(h.responses, slices.Repeat([]string{"rejected by " + ended}, len(ms))...)
	return nil
}

func (h *hub) EnqueueForOrchestrator(_ context.Context, ms ...provider.Message) error {
	h.responses = append(h.responses, ms[0].Error.Type)
	return nil
}

// loaded returns an execution that has started with start-1, and has ended if an end is given.
func loaded(t *testing.T, ends ...history.Event) *execution.Execution {
	t.Helper()
	events := append([]history.Event{
		{ID: 1, Kind: history.OrchestrationStarted, StartID: "start-1", Time: time.Unix(1, 0)},
	}, ends...)
	read := &provider.Orchestration{
		Head: provider.Head{ExecutionID: "x"}, Segments: []provider.Segment{{Events: events}},
	}
	state := read.State(history.TrackTimers)
	x, err := (&execution.Loader{Registry: registry.New()}).Load(t.Context(), read, state, execution.ErrPaused)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// The status of the receiver decides the response to a message of another instance. A running instance receives it.
func TestRespond_statusOfReceiver_decidesTheResponse(t *testing.T) {
	t.Parallel()
	parent := &history.Parent{InstanceID: "p", ExecutionID: "px", EventID: 2}
	cancel := func(startID string) provider.Message {
		return provider.Message{Kind: provider.MessageCancel, StartID: startID, Parent: parent}
	}
	event := provider.Message{Kind: provider.MessageEventSent, Parent: parent}
	running, over := loaded(t), loaded(t, history.Event{ID: 2, Kind: history.OrchestrationCompleted})
	for name, c := range map[string]struct {
		x       *execution.Execution
		message provider.Message
		want    []string // nil: the code receives the message
	}{
		"cancel of a running instance": {running, cancel("start-1"), nil},
		"cancel of another start":      {running, cancel("start-2"), []string{history.TypeNotFound}},
		"cancel of an ended instance":  {over, cancel("start-1"), []string{history.TypeEnded}},
		"cancel of an absent instance": {nil, cancel("start-1"), []string{"never started"}},
		"events to a running instance": {running, event, nil},
		"events to an ended instance":  {over, event, []string{"rejected by x", "rejected by x"}},
		"events to an absent instance": {nil, event, []string{"rejected by ", "rejected by "}},
		"client's event, ended":        {over, provider.Message{Kind: provider.MessageEventRaised}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := []provider.InboxMessage{{Message: c.message}}
			if c.message.IsSent() { // two events, without the client's event, which gets no response
				raised := provider.Message{Kind: provider.MessageEventRaised}
				waiting = append(waiting, waiting[0], provider.InboxMessage{Message: raised})
			}
			must := MustRespond(c.x, &waiting[0])
			if must != (c.want != nil) {
				t.Errorf("must respond: got %v, want %v", must, c.want != nil)
			}
			if !must {
				return
			}
			h := &hub{}
			b := &Mailbox{Base: intake.NewBase(h, time.Now, slog.New(slog.DiscardHandler))}
			result, err := b.Respond(t.Context(), &Receiver{Execution: c.x, Absent: c.x == nil}, waiting)
			if err != nil || result.Consumed != len(c.want) || !slices.Equal(h.responses, c.want) {
				t.Errorf("got %d responses %q, error %v, want %q", result.Consumed, h.responses, err, c.want)
			}
		})
	}
}
