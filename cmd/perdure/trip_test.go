package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/docpage"
	"github.com/perdure/perdure/perduretest"
)

// tripExecution replaces the random execution ID in the page.
const tripExecution = "01K0XR9B6W0T6J3V5Q8N2M4P7S"

// bookTrip books a flight like the orchestration in docs/guides/compensation.md.
func bookTrip(ctx *perdure.OrchestrationContext, trip string) (none struct{}, err error) {
	_, err = perdure.CallActivity(ctx, book, trip+"/flight", perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, cancelBooking(trip+"/flight"))
	return none, err
}

func cancelBooking(key string) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, unbook, key).Await(ctx)
		return err
	}
}

// book takes two seconds.
func book(ctx context.Context, _ string) (none struct{}, err error) {
	select {
	case <-time.After(2 * time.Second):
		return none, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

func unbook(context.Context, string) (none struct{}, err error) { return none, nil }

// cancelledTrip returns the client of a hub with the trip "trip-7", which was cancelled while its flight was booked.
func cancelledTrip(t *testing.T) *client.Client {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "book-trip", bookTrip)
	perdure.AddActivity(r, "book", book)
	perdure.AddActivity(r, "cancel-booking", unbook)
	env := perduretest.New(t, r)
	hub := env.Client()
	if _, err := hub.Start(t.Context(), "book-trip", "7", client.WithInstanceID("trip-7")); err != nil {
		t.Fatal(err)
	}
	env.AfterFunc(1100*time.Millisecond, func() {
		if err := hub.Cancel(client.ContextWithCaller(t.Context(), "mia"), "trip-7", "changed plans"); err != nil {
			t.Error(err)
		}
	})
	if s, err := hub.Wait(t.Context(), "trip-7"); err != nil || s.Status != client.StatusCancelled {
		t.Fatalf("%s, %v", s.Status, err)
	}
	return hub
}

// The guide shows the output of why and history for a cancelled trip. With -update, the test writes it into the guide.
func TestGuide_cancelledTrip_hasOutputOfWhyAndHistory(t *testing.T) {
	t.Parallel()
	const page, section = "../../docs/guides/compensation.md", "trip"
	h := setup(t)
	h.client = cancelledTrip(t)
	s, err := h.client.Status(t.Context(), "trip-7")
	if err != nil {
		t.Fatal(err)
	}
	want := "\n```console\n"
	for _, verb := range []string{"why", "history"} {
		want += "$ perdure " + verb + " trip-7\n" + h.mustRun(verb, "trip-7")
	}
	want = strings.ReplaceAll(want, s.ExecutionID, tripExecution) + "```\n\n"
	if *update {
		if err := docpage.Write(page, section, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := docpage.Read(page, section)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s differs; run this test with -update. Want:\n%s", page, want)
	}
}
