package guides_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

func fulfilOrder(ctx *perdure.OrchestrationContext, lines []string) (int, error) {
	packing := perdure.CallSubOrchestrationByName[int](ctx, "pack-lines", len(lines))
	for _, line := range lines {
		perdure.RaiseEvent(ctx, packing.InstanceID(), "line", line)
	}
	return packing.Await(ctx)
}

// packLines receives a number of lines and returns the sum of their lengths, weighted by position.
func packLines(ctx *perdure.OrchestrationContext, lines int) (int, error) {
	sum := 0
	for n := range lines {
		line, err := perdure.WaitForExternalEvent[string](ctx, "line").Await(ctx)
		if err != nil {
			return 0, err
		}
		sum += (n + 1) * len(line)
	}
	return sum, nil
}

// scanLine adds a line to a parcel. The first line starts the parcel's orchestration.
func scanLine(ctx context.Context, hub *client.Client, parcel, line, scanID string) (started bool, err error) {
	return hub.StartOrRaiseEvent(ctx, "pack-lines", 3, "line", line,
		client.WithInstanceID(parcel), client.WithIdempotencyKey(scanID))
}

type Notice struct {
	Customer, Text string
}

func notify(ctx *perdure.OrchestrationContext, n Notice) (string, error) {
	_, err := perdure.RaiseEvent(ctx, n.Customer, "notice", n.Text).Await(ctx)
	if !errors.Is(err, perdure.ErrInstanceNotFound) {
		return "delivered", err
	}
	if _, err := perdure.StartOrchestration(ctx, "inbox", 1, perdure.WithInstanceID(n.Customer)); err != nil {
		return "", err
	}
	_, err = perdure.RaiseEvent(ctx, n.Customer, "notice", n.Text).Await(ctx)
	return "delivered to a new inbox", err
}

// inbox collects two notices.
func inbox(ctx *perdure.OrchestrationContext, _ int) ([]string, error) {
	var notices []string
	for len(notices) < 2 {
		text, err := perdure.WaitForExternalEvent[string](ctx, "notice").Await(ctx)
		if err != nil {
			return notices, err
		}
		notices = append(notices, text)
	}
	return notices, nil
}

func newEventEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil-order", fulfilOrder)
	perdure.AddOrchestration(r, "pack-lines", packLines)
	perdure.AddOrchestration(r, "notify", notify)
	perdure.AddOrchestration(r, "inbox", inbox)
	return perduretest.New(t, r)
}

func TestRaiseEvent_severalEvents_arriveInOrder(t *testing.T) {
	t.Parallel()
	if n := run[int](t, newEventEnv(t), "fulfil-order", []string{"a", "bb", "ccc"}); n != 1+2*2+3*3 {
		t.Errorf("%d", n)
	}
}

func TestStartOrRaise_repeatedCall_startsOnceAndDeliversOnce(t *testing.T) {
	t.Parallel()
	env := newEventEnv(t)
	for i, line := range []string{"a", "bb", "bb", "ccc"} { // the second scan is sent twice
		started, err := scanLine(t.Context(), env.Client(), "parcel-7", line, "scan of "+line)
		if err != nil || started != (i == 0) {
			t.Fatalf("%s: %v, %v", line, started, err)
		}
	}
	s, err := env.Client().Wait(t.Context(), "parcel-7")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 1+2*2+3*3 {
		t.Errorf("%d, %v", n, err)
	}
	_, err = scanLine(t.Context(), env.Client(), "parcel-7", "d", "scan of d")
	if !errors.Is(err, client.ErrEnded) {
		t.Errorf("packed parcel: %v", err)
	}
}

func TestRaiseEvent_unknownInstance_startsInboxOnce(t *testing.T) {
	t.Parallel()
	env := newEventEnv(t)
	for i, want := range []string{"delivered to a new inbox", "delivered"} {
		if got := run[string](t, env, "notify", Notice{"ada", []string{"hello", "goodbye"}[i]}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	env.Advance(time.Second)
	s, err := env.Client().Wait(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Result[[]string](s); err != nil || len(got) != 2 || got[0] != "hello" || got[1] != "goodbye" {
		t.Errorf("%q, %v", got, err)
	}
}
