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

func fulfilLines(ctx *perdure.OrchestrationContext, lines []string) (int, error) {
	packing := perdure.CallSubOrchestrationByName[int](ctx, "pack-lines", len(lines))
	for _, line := range lines {
		perdure.RaiseEvent(ctx, packing.InstanceID(), "line", line)
	}
	return packing.Await(ctx)
}

// packLines packs as many lines as it is told, and counts their letters in the order in which they come: the first once, the second twice.
func packLines(ctx *perdure.OrchestrationContext, lines int) (int, error) {
	letters := 0
	for n := range lines {
		line, err := perdure.WaitForExternalEvent[string](ctx, "line").Await(ctx)
		if err != nil {
			return 0, err
		}
		letters += (n + 1) * len(line)
	}
	return letters, nil
}

// scanLine adds a line to a parcel, and begins the parcel with its first line.
func scanLine(ctx context.Context, hub *client.Client, parcel, line, scan string) (first bool, err error) {
	return hub.StartOrRaise(ctx, "pack-lines", 3, "line", line, client.WithInstanceID(parcel), client.WithIdempotencyKey(scan))
}

type notice struct {
	Customer, Text string
}

func notify(ctx *perdure.OrchestrationContext, n notice) (string, error) {
	_, err := perdure.RaiseEvent(ctx, n.Customer, "notice", n.Text).Await(ctx)
	if !errors.Is(err, perdure.ErrInstanceNotFound) {
		return "told", err
	}
	if _, err := perdure.StartOrchestration(ctx, "inbox", 1, perdure.WithInstanceID(n.Customer)); err != nil {
		return "", err
	}
	_, err = perdure.RaiseEvent(ctx, n.Customer, "notice", n.Text).Await(ctx)
	return "told, who is new", err
}

// inbox keeps what it is told, until there are two notices.
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

func talkingEnv(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "fulfil-lines", fulfilLines)
	perdure.AddOrchestration(r, "pack-lines", packLines)
	perdure.AddOrchestration(r, "notify", notify)
	perdure.AddOrchestration(r, "inbox", inbox)
	return perduretest.New(t, r)
}

func TestLinesArriveInOrder(t *testing.T) {
	t.Parallel()
	if n := run[int](t, talkingEnv(t), "fulfil-lines", []string{"a", "bb", "ccc"}); n != 1+2*2+3*3 {
		t.Errorf("%d", n)
	}
}

func TestScansBeginOneParcel(t *testing.T) {
	t.Parallel()
	env := talkingEnv(t)
	for i, line := range []string{"a", "bb", "bb", "ccc"} { // the second is scanned once, and told twice
		first, err := scanLine(t.Context(), env.Client(), "parcel-7", line, "scan of "+line)
		if err != nil || first != (i == 0) {
			t.Fatalf("%s: %v, %v", line, first, err)
		}
	}
	s, err := env.Client().Wait(t.Context(), "parcel-7")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := client.Result[int](s); err != nil || n != 1+2*2+3*3 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := scanLine(t.Context(), env.Client(), "parcel-7", "d", "scan of d"); !errors.Is(err, client.ErrTerminal) {
		t.Errorf("a parcel that is packed: %v", err)
	}
}

func TestWhoIsNewIsToldOnce(t *testing.T) {
	t.Parallel()
	env := talkingEnv(t)
	for i, want := range []string{"told, who is new", "told"} {
		if got := run[string](t, env, "notify", notice{"ada", []string{"hello", "goodbye"}[i]}); got != want {
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
