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

// parked is how many inputs are more than a commit can hand on, with ids and data that hardly compress and are copied.
const parked = 4500

// incompressible is a text of some bytes that compresses by a quarter.
func incompressible(bytes int) string {
	b := make([]byte, bytes*3/4)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parkMany sends an instance that is paused more than a commit could hand on, and has it go on.
func (h *hub) parkMany(in provider.Instance, kind provider.MessageKind, name string) {
	h.t.Helper()
	h.pause(in, "p1")
	for n := range parked {
		h.send(provider.Message{
			Kind: kind, InstanceID: in.InstanceID, StartID: in.StartID, Name: name, EventID: incompressible(250), Data: encoded(h.t, incompressible(1000)),
		})
		if n%500 == 499 {
			h.turns()
		}
	}
	h.resume(in, "r1")
	h.serveFor(time.Hour)
}

// An entity that was paused for long has more operations than it could hand on: it takes all.
func TestR31AnEntityTakesAllThatWasParked(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	r := registry()
	perdure.AddEntity(r, "notes", perdure.Operation("note", func(_ *perdure.OrchestrationContext, taken *int, _ string) (int, error) {
		*taken++
		return *taken, nil
	}))
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.startAs(perdure.EntityInstanceID("notes", "k"), perdure.EntityOrchestrationName("notes"), nil)
		h.turns()
		h.parkMany(in, provider.MessageUpdate, "note")
		h.wantStatus(in, provider.StatusRunning)
		h.wantEntity("notes", fmt.Sprint(parked))
		if now := h.read(in); now.ExecutionNumber < 2 {
			t.Errorf("it is in execution %d", now.ExecutionNumber)
		}
	})
}

// Code that continues as new with each event cannot hand on so many: its instance is blocked, and loses none. It goes on with code that takes more before.
func TestR18WhatIsParkedIsMoreThanACommitHandsOn(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	hears := func(atOnce int) *perdure.Registry {
		r := registry()
		perdure.AddOrchestration(r, "listens", func(ctx *perdure.OrchestrationContext, heard int) (int, error) {
			for range atOnce {
				if _, err := perdure.WaitForExternalEvent[string](ctx, "say").Await(ctx); err != nil {
					return 0, err
				}
				if heard++; heard == parked {
					return heard, nil
				}
			}
			return perdure.ContinueAsNew[int](ctx, heard)
		})
		return r
	}
	inBubble(t, simhub.Options{Registry: hears(1)}, func(ctx context.Context, h *hub) {
		in := h.start("listens", 0)
		h.turns()
		h.parkMany(in, provider.MessageEventRaised, "say")
		h.wantStatus(in, provider.StatusBlocked)
		if last := h.read(in); last.Diagnosis == nil || last.Diagnosis.Type != history.TypePayloadTooLarge {
			t.Errorf("it is blocked: %+v", last.Diagnosis)
		}
		if err := h.Deploy(ctx, hears(3000), "b2"); err != nil {
			t.Fatal(err)
		}
		h.watch()
		h.serveFor(time.Hour)
		h.wantOutput(h.read(in), fmt.Sprint(parked))
	})
}
