package dispatch_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// parked is a number of inputs that exceeds a commit of continue-as-new. Their IDs and data hardly compress.
const parked = 4500

// incompressible returns random text that compresses by a quarter.
func incompressible(bytes int) string {
	b := make([]byte, bytes*3/4)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parkMany parks this number of inputs of a paused instance, and resumes the instance.
func (h *hub) parkMany(in provider.Instance, kind provider.MessageKind, name string) {
	h.t.Helper()
	h.pause(in, "p1")
	for n := range parked {
		h.send(provider.Message{
			Kind: kind, InstanceID: in.InstanceID, StartID: in.StartID, Name: name, EventID: incompressible(250),
			Data: encoded(h.t, incompressible(1000)),
		})
		if n%500 == 499 {
			h.turns()
		}
	}
	h.resume(in, "r1")
	h.serveFor(time.Hour)
}

// A paused entity has more parked operations than continue-as-new can copy. It processes all of them.
func TestR31_pausedEntityHasManyOperations_processesAll(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	r := registry()
	note := func(_ *perdure.OrchestrationContext, taken *int, _ string) (int, error) {
		*taken++
		return *taken, nil
	}
	perdure.AddEntity(r, "notes", perdure.Operation("note", note))
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.startAs(perdure.EntityInstanceID("notes", "k"), perdure.EntityOrchestrationName("notes"), nil)
		h.turns()
		h.parkMany(in, provider.MessageUpdate, "note")
		h.wantStatus(in, provider.StatusRunning)
		h.wantEntity("notes", fmt.Sprint(parked))
		if now := h.read(in); now.ExecutionNumber < 2 {
			t.Errorf("got execution %d, want at least 2", now.ExecutionNumber)
		}
	})
}

// Code that continues as new after each event cannot copy all parked events. Its instance is blocked and loses no
// event. The instance continues in a build whose code consumes more events per execution.
func TestR18_tooManyParkedInputsForContinueAsNew_areKept(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	listens := func(atOnce int) *perdure.Registry {
		r := registry()
		perdure.AddOrchestration(r, "listens", func(ctx *perdure.OrchestrationContext, receivedCount int) (int, error) {
			for range atOnce {
				if _, err := perdure.WaitForExternalEvent[string](ctx, "say").Await(ctx); err != nil {
					return 0, err
				}
				if receivedCount++; receivedCount == parked {
					return receivedCount, nil
				}
			}
			return perdure.ContinueAsNew[int](ctx, receivedCount)
		})
		return r
	}
	inBubble(t, simhub.Options{Registry: listens(1)}, func(ctx context.Context, h *hub) {
		in := h.start("listens", 0)
		h.turns()
		h.parkMany(in, provider.MessageEventRaised, "say")
		h.wantStatus(in, provider.StatusBlocked)
		if last := h.read(in); last.Diagnosis == nil || last.Diagnosis.Type != history.TypePayloadTooLarge {
			t.Errorf("got diagnosis %+v, want payload too large", last.Diagnosis)
		}
		if err := h.Deploy(ctx, listens(3000), "b2"); err != nil {
			t.Fatal(err)
		}
		h.watch()
		h.serveFor(time.Hour)
		h.wantOutput(h.read(in), fmt.Sprint(parked))
	})
}
