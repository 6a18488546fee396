package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
)

// sendInput is the input of an orchestration that sends events "add" with consecutive numbers, starting with 0.
type sendInput struct {
	To     string
	Events int
	// Continues makes the receiver continue as new after each event.
	Continues bool
}

// receiveInput is the input of a receiver: the received events, and the number that it still expects.
type receiveInput struct {
	Left      int
	Received  []int
	Continues bool
}

// addEventOrchestrations adds orchestrations that send events to each other.
func addEventOrchestrations(r *perdure.Registry) {
	perdure.AddOrchestration(r, "receiver", receivesEvents)
	perdure.AddOrchestration(r, "sender", func(ctx *perdure.OrchestrationContext, in sendInput) (string, error) {
		return countResults(ctx, raiseAll(ctx, in.To, in.Events))
	})
	perdure.AddOrchestration(r, "sends-and-ends", func(
		ctx *perdure.OrchestrationContext, in sendInput,
	) (string, error) {
		raiseAll(ctx, in.To, in.Events)
		return "note", nil
	})
	perdure.AddOrchestration(r, "exchange", exchange)
	perdure.AddOrchestration(r, "starts-receiver", startReceiver)
	perdure.AddOrchestration(r, "sends-to-ended", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
		if _, err := perdure.CallSubOrchestrationByName[int](ctx, "nothing", 1,
			perdure.WithInstanceID(id)).Await(ctx); err != nil {
			return "", err
		}
		return countResults(ctx, raiseAll(ctx, id, 1))
	})
}

// receivesEvents waits for events and returns their numbers in the order of their arrival.
func receivesEvents(ctx *perdure.OrchestrationContext, h receiveInput) ([]int, error) {
	for h.Left > 0 {
		n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
		if err != nil {
			return nil, err
		}
		h.Received, h.Left = append(h.Received, n), h.Left-1
		if h.Continues && h.Left > 0 {
			return perdure.ContinueAsNew[[]int](ctx, h)
		}
	}
	return h.Received, nil
}

func raiseAll(ctx *perdure.OrchestrationContext, to string, events int) []*perdure.Future[struct{}] {
	sent := make([]*perdure.Future[struct{}], events)
	for n := range sent {
		sent[n] = perdure.RaiseEvent(ctx, to, "add", n)
	}
	return sent
}

// countResults counts the results of events.
func countResults(ctx *perdure.OrchestrationContext, sent []*perdure.Future[struct{}]) (string, error) {
	count := map[string]int{}
	for _, f := range sent {
		_, err := f.Await(ctx)
		switch {
		case err == nil:
			count["delivered"]++
		case errors.Is(err, perdure.ErrInstanceNotFound):
			count["absent"]++
		case errors.Is(err, perdure.ErrInstanceEnded):
			count["over"]++
		default:
			return "", err
		}
	}
	var all []string
	for what, n := range count {
		all = append(all, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(all)
	return strings.Join(all, ", "), nil
}

// exchange starts a child and sends it events in the same turn. The child exists before the events arrive.
func exchange(ctx *perdure.OrchestrationContext, in sendInput) (string, error) {
	toReceive := receiveInput{Left: in.Events, Continues: in.Continues}
	child := perdure.CallSubOrchestrationByName[[]int](ctx, "receiver", toReceive)
	results, err := countResults(ctx, raiseAll(ctx, child.InstanceID(), in.Events))
	if err != nil {
		return "", err
	}
	got, err := child.Await(ctx)
	return fmt.Sprint(results, "; received ", got), err
}

// startReceiver sends an event to an instance that may not exist, and starts it if necessary.
func startReceiver(ctx *perdure.OrchestrationContext, id string) (string, error) {
	if _, err := perdure.RaiseEvent(ctx, id, "add", 6).Await(ctx); !errors.Is(err, perdure.ErrInstanceNotFound) {
		return "", fmt.Errorf("event without a receiver: %w", err)
	}
	child := perdure.CallSubOrchestrationByName[[]int](ctx, "receiver", receiveInput{Left: 2},
		perdure.WithInstanceID(id))
	sent := []*perdure.Future[struct{}]{perdure.RaiseEvent(ctx, id, "add", 7), perdure.RaiseEvent(ctx, id, "add", 8)}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(sent)...); err != nil {
		return "", err
	}
	got, err := child.Await(ctx)
	return fmt.Sprint("received ", got), err
}
