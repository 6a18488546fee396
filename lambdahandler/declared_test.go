package lambdahandler

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/schedule"
)

func withReports(t *testing.T) *perduretest.Env {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "report", func(*perdure.OrchestrationContext, any) (bool, error) { return true, nil })
	return perduretest.New(t, r)
}

// whenOf returns the expression of a schedule.
func whenOf(t *testing.T, env *perduretest.Env, id string) string {
	t.Helper()
	env.RunUntilIdle()
	s, err := env.Client().Schedules().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s.Schedule.Expression
}

func TestDeclaredSchedules_arePut(t *testing.T) {
	t.Parallel()
	env := withReports(t)
	first := newDeclaredSchedules(
		env.Client(),
		`[{"id":"nightly","orchestration":"report","when":"0 2 * * *"},{"id":"hourly","orchestration":"report","when":"rate(1 hour)","input":7}]`,
	)
	if err := first.putAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if night, hour := whenOf(t, env, "nightly"), whenOf(t, env, "hourly"); night != "0 2 * * *" ||
		hour != "rate(1 hour)" {
		t.Errorf("got expressions %s and %s", night, hour)
	}

	// Another process of the same deployment puts nothing. A process of the next deployment puts the changes.
	turns := func() (n int) {
		t.Helper()
		events, err := client.Collect(env.Client().History(t.Context(), schedule.InstanceID("nightly")))
		if err != nil {
			t.Fatal(err)
		}
		return len(events)
	}
	before := turns()
	again := newDeclaredSchedules(env.Client(), `[{"id":"nightly","orchestration":"report","when":"0 2 * * *"}]`)
	if err := again.putAll(t.Context()); err != nil || whenOf(t, env, "nightly") != "0 2 * * *" || turns() != before {
		t.Errorf("second put: got error %v, %d events, want %d", err, turns(), before)
	}
	next := newDeclaredSchedules(env.Client(), `[{"id":"nightly","orchestration":"report","when":"0 3 * * *"}]`)
	if err := next.putAll(t.Context()); err != nil || whenOf(t, env, "nightly") != "0 3 * * *" ||
		whenOf(t, env, "hourly") != "rate(1 hour)" {
		t.Errorf("next deployment: got error %v", err)
	}
}

// Manual changes of a declared schedule remain until its declaration changes.
func TestDeclaredSchedules_cancelledByHand_staysCancelled(t *testing.T) {
	t.Parallel()
	env := withReports(t)
	const doc = `[{"id":"nightly","orchestration":"report","when":"0 2 * * *"}]`
	if err := newDeclaredSchedules(env.Client(), doc).putAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	if err := env.Client().Cancel(t.Context(), schedule.InstanceID("nightly"), "incident"); err != nil {
		t.Fatal(err)
	}
	env.RunUntilIdle()
	if err := newDeclaredSchedules(env.Client(), doc).putAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Minute)
	if s, err := env.Client().Schedules().Get(t.Context(), "nightly"); err != nil ||
		s.RuntimeStatus != client.StatusCancelled {
		t.Errorf("got status %s, error %v", s.RuntimeStatus, err)
	}
}

// Each sweep reports an invalid schedule and puts the others.
func TestDeclaredSchedules_invalidSchedule_isReported(t *testing.T) {
	t.Parallel()
	env := withReports(t)
	d := newDeclaredSchedules(
		env.Client(),
		`[{"id":"often","orchestration":"report","when":"often"},{"id":"nightly","orchestration":"report","when":"0 2 * * *"}]`,
	)
	for range 2 {
		if err := d.putAll(t.Context()); err == nil ||
			!strings.Contains(err.Error(), `"often": when "often": must be like`) {
			t.Errorf("got error %v", err)
		}
	}
	if got := whenOf(t, env, "nightly"); got != "0 2 * * *" {
		t.Error(got)
	}
	for _, doc := range []string{"{", `[{"id":"a","every":"1h"}]`} {
		if err := newDeclaredSchedules(env.Client(), doc).putAll(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "PERDURE_SCHEDULES: ") {
			t.Errorf("%s: got error %v", doc, err)
		}
	}
}

// The sweeper runs despite invalid declarations, and the tick fails.
func TestRenewer_invalidDeclarations_sweeps(t *testing.T) {
	t.Parallel()
	h, _ := aRenewer(t, perdure.NewRegistry())
	h.declared = newDeclaredSchedules(h.client, "{")
	result, err := h.handle(t.Context(), []byte(`{"source":"aws.events"}`))
	if woken, ok := result.(map[string]int); !ok || woken["woken"] != 0 || err == nil {
		t.Errorf("got %v, error %v", result, err)
	}
}

// veiled is a codec that marks stored data.
type veiled struct{}

func (veiled) ID() string { return "veiled" }

func (veiled) Encode(_ context.Context, _ perdure.PayloadInfo, doc []byte) ([]byte, error) {
	return append([]byte("v"), doc...), nil
}

func (veiled) Decode(_ context.Context, _ perdure.PayloadInfo, data []byte) ([]byte, error) {
	return data[1:], nil
}

// The input of a schedule is stored in history, so a renewer with the codec of the hub must encode it.
func TestDeclaredSchedules_inputIsEncoded(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	schedule.Register(r)
	hub, err := simhub.New(simhub.Options{Registry: r, Codecs: []perdure.Codec{veiled{}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	b := begin(true, true, []Option{WithCodec(veiled{}), WithEnvironment(func(string) string { return "" })})
	const doc = `[{"id":"nightly","orchestration":"report","when":"0 2 * * *","input":"secret"}]`
	renewer := newRenewer(hub.Renewer, b.client(hub.Provider), doc, slog.New(slog.DiscardHandler))
	if _, err := renewer.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	for e, err := range client.New(hub.Provider).History(t.Context(), schedule.InstanceID("nightly")) {
		if err != nil {
			t.Fatal(err)
		}
		if s, sealed := client.EncodedPayloadOf(e.Input); e.Kind != history.OrchestrationStarted || !sealed ||
			s.Codec != "veiled" {
			t.Errorf("%s: got input %s", e.Kind, e.Input)
		}
		return
	}
	t.Error("the schedule was not put")
}
