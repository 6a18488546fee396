package perduretest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// recorder is a testing.TB that records failures and logs.
type recorder struct {
	testing.TB

	failed, logged []string
}

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

func TestReplay_inputsDiffer_failsUnlessAllowed(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "charge", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		return perdure.CallActivityByName[int](ctx, "charge", n+1).Await(ctx)
	})
	events := []history.Event{
		{Kind: history.OrchestrationStarted, Name: "order", Input: history.Payload("1"), StartID: "s", Number: 1},
		{Kind: history.TurnStarted, Version: "0", BuildID: "b"},
		{Kind: history.ActivityScheduled, Name: "charge", Queue: "default", Input: history.Payload("1")},
	}
	for i := range events {
		events[i].ID, events[i].Time = int64(i)+1, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	d, err := history.NewDocument("i", "order", history.DocumentExecution{ExecutionID: "01", Number: 1, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	want := `event #3: history has ActivityScheduled "charge" with the input 1, the code requests ActivityScheduled "charge" with the input 2`
	strict, lenient := &recorder{TB: t}, &recorder{TB: t}
	perduretest.Replay(strict, r, doc)
	perduretest.Replay(lenient, r, doc, perduretest.AllowInputChanges())
	if len(strict.failed) != 1 || !strings.Contains(strict.failed[0], want) ||
		!strings.Contains(strict.failed[0], "AllowInputChanges") {
		t.Errorf("the test is told %q", strict.failed)
	}
	if len(lenient.failed) != 0 || len(lenient.logged) != 1 || !strings.Contains(lenient.logged[0], want) {
		t.Errorf("where it is meant, the test is told %q, and %q is logged", lenient.failed, lenient.logged)
	}
}
