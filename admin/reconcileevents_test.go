package admin_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simhub"
)

// addEventOrchestrations adds two orchestrations. "sender" sends two words to another instance. "gathers" collects
// words until the last word arrives.
func addEventOrchestrations(_ *lost, r *perdure.Registry) {
	perdure.AddOrchestration(r, "sender", func(ctx *perdure.OrchestrationContext, to string) (string, error) {
		responses := ""
		for _, word := range []string{"a", "z"} {
			_, err := perdure.RaiseEvent(ctx, to, "word", word).Await(ctx)
			switch {
			case err == nil:
				responses += "delivered, "
			case errors.Is(err, perdure.ErrInstanceNotFound):
				responses += "absent, "
			case errors.Is(err, perdure.ErrInstanceEnded):
				responses += "over, "
			}
		}
		return responses, nil
	})
	perdure.AddOrchestration(r, "gathers", func(ctx *perdure.OrchestrationContext, last string) (string, error) {
		for words := ""; ; {
			word, err := perdure.WaitForExternalEvent[string](ctx, "word").Await(ctx)
			if words += word; err != nil || word == last {
				return words, err
			}
		}
	})
}

// All queues lose their messages while an event or its acknowledgment is in transit. The sender receives the result of
// the event, and the receiver processes the event once.
func TestReconcile_queuesLostDuringRaiseEvent_eventIsProcessedOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"eventSent", "eventAnswered"} {
		for _, tt := range []struct {
			last                 any
			output, receivedText string
		}{
			{"z", "delivered, " + "delivered, ", "az"}, // the receiver receives both words
			{"a", "delivered, over, ", "a"},            // the receiver completes after the first word
			{nil, "absent, " + "absent, ", ""},         // the receiver does not exist
		} {
			for _, ago := range []time.Duration{20 * time.Minute, 20 * 24 * time.Hour} {
				t.Run(fmt.Sprint(kind, " ", tt.output, ago), func(t *testing.T) {
					t.Parallel()
					onHub(t, simhub.Options{BatchSize: 1}, addEventOrchestrations, func(h *lost) {
						h.overLoss(kind, "sender", "gathers", tt.last, tt.output, tt.receivedText, ago)
					})
				})
			}
		}
	}
}

// overLoss empties all queues while a message of the given kind is in transit between a sender and a receiver. If last
// is nil, the receiver does not exist. last is the input of the receiver.
func (h *lost) overLoss(kind, sender, receiver string, last any, output, receivedText string, ago time.Duration) {
	h.t.Helper()
	if last != nil {
		if _, err := h.Start(h.ctx, receiver, last, client.WithInstanceID("c")); err != nil {
			h.t.Fatal(err)
		}
		h.ServeFor(h.ctx, time.Minute)
	}
	h.failDeliveries(kind)
	if _, err := h.Start(h.ctx, sender, "c", client.WithInstanceID("i")); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, time.Minute)
	h.fault.Store(nil)
	time.Sleep(ago)
	h.emptied()
	if _, err := h.Reconcile(h.ctx, admin.ReconcileOptions{}); err != nil {
		h.t.Fatal(err)
	}
	h.ServeFor(h.ctx, 20*time.Minute)
	for id, want := range map[string]string{"i": output, "c": receivedText} {
		if want == "" {
			continue
		}
		if s, err := h.Status(h.ctx, id); err != nil || s.Status != client.StatusCompleted ||
			string(s.Output) != fmt.Sprintf("%q", want) {
			h.t.Errorf("instance %s is %s with output %s, %v; want output %q", id, s.Status, s.Output, err, want)
		}
	}
}
