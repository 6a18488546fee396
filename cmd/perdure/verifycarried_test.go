package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// notes is the number of notes of a relay, and exceeds the number of carried events that a history stores inline.
const notes = 50

// relay waits in its first execution for an event. Its next execution receives the text and the notes that were sent to
// the first one, and returns their sizes.
func relay(ctx *perdure.OrchestrationContext, baggage string) (int, error) {
	if baggage == "none yet" {
		if _, err := perdure.WaitForExternalEvent[any](ctx, "go").Await(ctx); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, strings.Repeat("b", 300<<10))
	}
	text, err := perdure.WaitForExternalEvent[string](ctx, "text").Await(ctx)
	if err != nil {
		return 0, err
	}
	length := len(baggage) + len(text)
	for range notes {
		note, err := perdure.WaitForExternalEvent[string](ctx, "note").Await(ctx)
		if err != nil {
			return 0, err
		}
		length += len(note)
	}
	return perdure.CallActivityByName[int](ctx, "measure", length).Await(ctx)
}

// readsOf records the objects that are read from the bucket.
type readsOf struct {
	mu   sync.Mutex
	keys []string
}

func (r *readsOf) intercept(_ context.Context, c simaws.Call, next func() error) error {
	if object, ok := c.Input.(*simaws.BucketCall); ok && c.Operation == "GetObject" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keys = append(r.keys, object.Key)
	}
	return next()
}

// relaying returns a hub with a relay whose second execution has received the events of the first.
func relaying(t *testing.T, h *tool) (*simhub.Hub, *readsOf) {
	t.Helper()
	r, reads := codeToVerify("same"), &readsOf{}
	perdure.AddActivity(r, "measure", func(context.Context, int) (int, error) { return 0, perdure.ErrPending })
	hub, err := simhub.New(simhub.Options{Registry: r, Bucket: true, BatchSize: 1, Intercept: reads.intercept})
	if err != nil {
		t.Fatal(err)
	}
	h.client = client.New(hub.Provider)
	h.mustRun("start", "relay", "--id", "a", "--input", `"none yet"`)
	raise := func(name, data string) {
		t.Helper()
		if err := h.client.RaiseEvent(t.Context(), "a", name, data); err != nil {
			t.Fatal(err)
		}
	}
	raise("text", strings.Repeat("t", 300<<10))
	for n := range notes {
		raise("note", strings.Repeat(strconv.Itoa(n%10), 90<<10))
	}
	hub.ServeFor(t.Context(), time.Minute)
	raise("go", "")
	hub.ServeFor(t.Context(), time.Minute)
	return hub, reads
}

// wantContinues fails the test unless the instance is replayed and would continue.
func (h *tool) wantContinues() {
	h.t.Helper()
	if exit, v := h.verified("same"); exit != 0 || v.Replayed != 1 || len(v.Findings) != 0 {
		h.t.Errorf("exit %d, %+v; %s", exit, v, h.err.String())
	}
}

// verify reads carried events at their location: in the history of the earlier execution, or in the bucket under the
// name of that execution.
func TestVerify_carriedEvents_areReadFromPastExecution(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		hub, reads := relaying(t, h)
		defer synctest.Wait()
		defer hub.Close()
		s, err := h.client.Status(t.Context(), "a")
		if err != nil || s.Status != client.StatusRunning {
			t.Fatalf("%+v, %v", s, err)
		}
		stored, referred := carried(t, h, "a")
		if len(stored) != 1 || strings.Contains(stored[0], s.ExecutionID) || referred == 0 {
			t.Fatalf("stored: %v, referenced: %d", stored, referred)
		}
		reads.keys, h.client = nil, client.New(hub.Provider) // a client that has stored no payloads
		h.wantContinues()
		if !slices.ContainsFunc(reads.keys, func(key string) bool { return strings.HasSuffix(key, stored[0]) }) {
			t.Errorf("read %v, not %s", reads.keys, stored[0])
		}
	})
}

// verify also reads the events that a restarted instance has copied from the original instance and its earlier
// executions.
func TestVerify_restartedInstance_carriedEventsAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		hub, _ := relaying(t, h)
		defer synctest.Wait()
		defer hub.Close()
		h.mustRun("terminate", "a")
		hub.ServeFor(t.Context(), time.Minute)
		scheduled := int64(0)
		for e, err := range h.client.History(t.Context(), "a") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == history.ActivityScheduled {
				scheduled = e.ID
			}
		}
		h.mustRun("restart", "a", "--id", "b", "--from-event", strconv.FormatInt(scheduled, 10))
		hub.ServeFor(t.Context(), time.Minute)
		h.mustRun("purge", "a")
		hub.ServeFor(t.Context(), time.Hour)
		if stored, _ := carried(t, h, "b"); len(stored) != 1 {
			t.Fatalf("stored are %v", stored)
		}
		h.client = client.New(hub.Provider) // a client that has stored no payloads
		h.wantContinues()
	})
}

// carried returns the carried events of the current execution: the keys of events in the bucket, and the number of
// events in other histories.
func carried(t *testing.T, h *tool, id string) (stored []string, referred int) {
	t.Helper()
	s, err := h.client.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range h.client.History(t.Context(), id, client.WithExecutionID(s.ExecutionID)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.CarriedEvents {
			if key := c.Data.StorageKey(); key != "" {
				stored = append(stored, key)
			} else if _, refers := c.Data.Reference(); refers {
				referred++
			}
		}
	}
	return stored, referred
}
