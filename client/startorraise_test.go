package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// raised are the names and ids of the events that were sent, with the start of the life that they are for.
func (h *ending) raised() (all []string) {
	for _, m := range h.told {
		if m.Kind == provider.MessageEventRaised {
			all = append(all, m.Name+" "+m.EventID+" "+string(m.Data)+" "+m.StartID)
		}
	}
	return all
}

func (h *ending) life(t *testing.T, id string) string {
	t.Helper()
	in, err := h.Provider.ReadInstance(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return in.StartID
}

func TestStartOrRaise(t *testing.T) {
	t.Parallel()
	c, h := occupied(t)
	tell := func(id, key string) bool {
		t.Helper()
		started, err := c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, client.WithInstanceID(id), client.WithIdempotencyKey(key))
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	if tell("one", "k1") {
		t.Error("it says that it has started what was there")
	}
	h.wantCalls(t, "start", "read", "send")
	h.wantOne(t, "hello")
	h.calls = nil
	if !tell("new", "k2") {
		t.Error("it does not say that it has started it")
	}
	h.wantCalls(t, "start", "send")
	if !tell("new", "k2") || tell("new", "k3") {
		t.Error("a repetition is another start, or another key the same")
	}
	one, other := h.life(t, "one"), h.life(t, "new")
	want := []string{"paid k1 7 " + one, "paid k2 7 " + other, "paid k2 7 " + other, "paid k3 7 " + other}
	if got := h.raised(); !slices.Equal(got, want) {
		t.Errorf("raised %q, want %q", got, want)
	}
}

func TestStartOrRaiseWhereTheInstanceIsOver(t *testing.T) {
	t.Parallel()
	c, h := occupied(t)
	h.Append("one", completed("1"))
	for _, opts := range [][]client.StartOption{nil, {client.IfExists(client.Ignore)}} {
		if started, err := c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, append(opts, one)...); started || !errors.Is(err, client.ErrTerminal) {
			t.Errorf("%v, %v", started, err)
		}
	}
	h.calls = nil
	anew := func() (bool, error) {
		return c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, one, client.IfExists(client.Replace), client.WithIdempotencyKey("k"))
	}
	if started, err := anew(); !started || err != nil {
		t.Errorf("%v, %v", started, err)
	}
	h.wantCalls(t, "start", "read", "delete", "start", "send")
	if got, want := h.raised(), []string{"paid k 7 " + h.life(t, "one")}; !slices.Equal(got, want) {
		t.Errorf("raised %q, want %q", got, want)
	}

	// What is not over is raised in, and its own instance, once over, is not started anew.
	if started, err := c.StartOrRaise(t.Context(), "hello", 0, "paid", 8, one, client.IfExists(client.Replace)); started || err != nil {
		t.Errorf("%v, %v", started, err)
	}
	h.Append("one", completed("1"))
	if started, err := anew(); !started || !errors.Is(err, client.ErrTerminal) {
		t.Errorf("repeated: %v, %v", started, err)
	}
	if len(h.raised()) != 2 {
		t.Errorf("raised %q", h.raised())
	}
	if err := c.Purge(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := anew(); !errors.Is(err, client.ErrPurged) || len(h.raised()) != 2 {
		t.Errorf("purged, and repeated: %v, raised %q", err, h.raised())
	}
}

// Whichever call of it fails, done or not: repeated, there is one instance, and all that it is sent is the one event.
func TestStartOrRaiseIsRepeated(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"one", "new"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				c, h := occupied(t)
				h.fail, h.done = n, done
				tell := func() error {
					_, err := c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, client.WithInstanceID(id), client.WithIdempotencyKey("k"))
					return err
				}
				if err := tell(); err == nil {
					if len(h.calls) >= n {
						t.Errorf("call %d failed, and nobody said so", n)
					}
					break
				} else if !errors.Is(err, errGone) {
					t.Fatal(err)
				}
				if err := tell(); err != nil {
					t.Errorf("%s, call %d: %v", id, n, err)
				}
				want := "paid k 7 " + h.life(t, id)
				if got := slices.Compact(h.raised()); !slices.Equal(got, []string{want}) {
					t.Errorf("%s, call %d: raised %q, want %q", id, n, got, want)
				}
			}
		}
	}
}

// The instance ends, or is purged, between the refused start and the look: what is there then decides.
func TestStartOrRaiseMeetsAnEnd(t *testing.T) {
	t.Parallel()
	c, h := occupied(t)
	h.do["read"] = func() { _ = h.DeleteInstance(t.Context(), "one", true) }
	if started, err := c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, one); !started || err != nil {
		t.Errorf("purged meanwhile: %v, %v", started, err)
	}
	if got := h.raised(); len(got) != 1 || !strings.HasSuffix(got[0], h.life(t, "one")) {
		t.Errorf("raised %q", got)
	}

	c, h = occupied(t)
	h.do["read"] = func() { h.Append("one", completed("1")) }
	if started, err := c.StartOrRaise(t.Context(), "bye", 0, "paid", 7, one); started || !errors.Is(err, client.ErrTerminal) {
		t.Errorf("over meanwhile: %v, %v", started, err)
	}
}

func TestStartOrRaiseRefuses(t *testing.T) {
	t.Parallel()
	c, h := occupied(t)
	tell := func(orchestration, event string, data any, opts ...client.StartOption) error {
		_, err := c.StartOrRaise(t.Context(), orchestration, 0, event, data, opts...)
		return err
	}
	fresh := client.WithInstanceID("new")
	for field, err := range map[string]error{
		"instanceId":     tell("bye", "paid", 7),
		"orchestration":  tell("", "paid", 7, fresh),
		"event":          tell("bye", "", 7, fresh),
		"data":           tell("bye", "paid", make(chan int), fresh),
		"idempotencyKey": tell("bye", "paid", 7, fresh, client.WithIdempotencyKey("a\n")),
		"ifExists":       tell("bye", "paid", 7, fresh, client.IfExists("keep")),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if large, ok := errors.AsType[*perdure.PayloadTooLargeError](tell("bye", "paid", strings.Repeat("x", 200<<10), fresh)); !ok || large.What != "data" {
		t.Errorf("too much data: %v", large)
	}
	if err := tell("nobody", "paid", 7, one); !errors.Is(err, client.ErrUnknownOrchestration) {
		t.Errorf("nobody knows it: %v", err)
	}
	if len(h.told) > 0 || !slices.Equal(h.calls, []string{"start"}) {
		t.Errorf("told %v, calls %q", h.told, h.calls)
	}
}
