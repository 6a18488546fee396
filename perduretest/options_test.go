package perduretest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/perduretest"
)

// lines collects log records.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func greeter() *perdure.Registry {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "greet", func(_ context.Context, name string) (string, error) {
		return "hello " + name, nil
	})
	perdure.AddOrchestration(r, "greets", func(ctx *perdure.OrchestrationContext, name string) (string, error) {
		ctx.Logger().Info("event arrives", "name", name)
		return perdure.CallActivityByName[string](ctx, "greet", name).Await(ctx)
	})
	return r
}

func TestNew_loggerAndInterceptors_receiveLogsAndCalls(t *testing.T) {
	t.Parallel()
	var logged lines
	var mu sync.Mutex
	var seen []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, what)
	}
	env := perduretest.New(t, greeter(), perduretest.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))),
		perduretest.WithInterceptors(perdure.Interceptor{
			Turn: func(ctx context.Context, turn perdure.TurnInfo, next func(context.Context) perdure.TurnResult) {
				note("turn of " + turn.Name)
				next(ctx)
			},
			Activity: func(
				ctx context.Context, a perdure.ActivityInfo, next func(context.Context) perdure.ActivityResult,
			) {
				note("run of " + a.Name)
				next(ctx)
			},
			ClientCall: func(ctx context.Context, c perdure.ClientCall, next func(context.Context) error) {
				note(c.Operation + " of " + c.Name)
				_ = next(ctx)
			},
		}))
	id, err := env.Client().Start(t.Context(), "greets", "Ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Start of greets", "turn of greets", "run of greet", "turn of greets"}; !slices.Equal(seen,
		want) {
		t.Errorf("interceptors: got %q, want %q", seen, want)
	}
	if n := strings.Count(logged.all.String(), `msg="event arrives"`); n != 1 ||
		!strings.Contains(logged.all.String(), "name=Ada") {
		t.Errorf("got the log line of the code %d times:\n%s", n, logged.all.String())
	}
}

// reversed is a codec that reverses the bytes.
type reversed struct{}

func (reversed) ID() string { return "reversed" }

func (reversed) Encode(_ context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	doc = slices.Clone(doc)
	slices.Reverse(doc)
	return doc, nil
}

func (c reversed) Decode(ctx context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	return c.Encode(ctx, p, data)
}

// Replay decodes payloads with the codecs, and reports a missing codec.
func TestWithReplayCodecs_encodedHistory_isDecoded(t *testing.T) {
	t.Parallel()
	d, err := history.NewDocument("i", "greets", history.DocumentExecution{
		ExecutionID: "01", Number: 1, Events: encodedHistory(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	perduretest.Replay(t, greeter(), doc, perduretest.WithReplayCodecs(reversed{}))
	without := &recorder{TB: t}
	if perduretest.Replay(without, greeter(), doc); len(without.failed) != 1 ||
		!strings.Contains(without.failed[0], "reversed") {
		t.Errorf("without the option: got failures %q", without.failed)
	}
}

// encodedHistory returns a history of greets with encoded payloads.
func encodedHistory(t *testing.T) []history.Event {
	t.Helper()
	sealed := func(doc string) history.Payload {
		data, err := reversed{}.Encode(t.Context(), perdure.PayloadInfo{}, []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		return history.EncodedPayload{Codec: reversed{}.ID(), Data: data, Bytes: int64(len(doc))}.Payload()
	}
	events := []history.Event{
		{Kind: history.OrchestrationStarted, Name: "greets", Input: sealed(`"Ada"`), StartID: "s", Number: 1},
		{Kind: history.TurnStarted, Version: "0", BuildID: "b"},
		{Kind: history.ActivityScheduled, Name: "greet", Queue: "default", Input: sealed(`"Ada"`)},
		{Kind: history.TurnStarted, Version: "0", BuildID: "b"},
		{Kind: history.ActivityCompleted, SourceEventID: 3, Attempt: 1, Result: sealed(`"hello Ada"`)},
		{Kind: history.OrchestrationCompleted, Output: sealed(`"hello Ada"`)},
	}
	for i := range events {
		events[i].ID, events[i].Time = int64(i)+1, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return events
}
