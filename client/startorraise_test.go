package client_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// raised returns the names and IDs of the sent events, with the start ID of the incarnation that receives them.
func (h *ending) raised() (all []string) {
	for _, m := range h.messages {
		if m.Kind == provider.MessageEventRaised {
			all = append(all, m.Name+" "+m.EventID+" "+string(m.Data)+" "+m.StartID)
		}
	}
	return all
}

func (h *ending) startID(t *testing.T, id string) string {
	t.Helper()
	in, err := h.Provider.ReadInstance(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return in.StartID
}

func TestStartOrRaiseEvent_missingOrExistingInstance_startsOnlyIfMissing(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	startOrRaise := func(id, key string) bool {
		t.Helper()
		started, err := c.StartOrRaiseEvent(t.Context(), "bye", 0, "paid", 7, client.WithInstanceID(id),
			client.WithIdempotencyKey(key))
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	if startOrRaise("one", "k1") {
		t.Error("existing instance: got started")
	}
	h.wantCalls(t, "start", "send")
	h.wantOne(t, "hello")
	h.calls = nil
	if !startOrRaise("new", "k2") {
		t.Error("new instance: got not started")
	}
	h.wantCalls(t, "start", "send")
	if !startOrRaise("new", "k2") || startOrRaise("new", "k3") {
		t.Error("got the wrong start for a repeated key or for another key")
	}
	one, other := h.startID(t, "one"), h.startID(t, "new")
	want := []string{"paid k1 7 " + one, "paid k2 7 " + other, "paid k2 7 " + other, "paid k3 7 " + other}
	if got := h.raised(); !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}
}

func TestStartOrRaiseEvent_endedInstance_isStartedAgainOnlyWithReplace(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	h.Append("one", completed("1"))
	for _, opts := range [][]client.StartOption{nil, {client.IfExists(client.UseExisting)}} {
		if started, err := c.StartOrRaiseEvent(t.Context(), "bye", 0, "paid", 7, append(opts, one)...); started ||
			!errors.Is(err, client.ErrEnded) {
			t.Errorf("got %v, error %v", started, err)
		}
	}
	h.calls = nil
	replace := func() (bool, error) {
		return c.StartOrRaiseEvent(t.Context(), "bye", 0, "paid", 7, one, client.IfExists(client.Replace),
			client.WithIdempotencyKey("k"))
	}
	if started, err := replace(); !started || err != nil {
		t.Errorf("got %v, error %v", started, err)
	}
	h.wantCalls(t, "start", "delete", "start", "send")
	if got, want := h.raised(), []string{"paid k 7 " + h.startID(t, "one")}; !slices.Equal(got, want) {
		t.Errorf("got events %q, want %q", got, want)
	}

	// A running instance receives the event. A repeated call does not restart an instance that the first call has
	// started.
	if started, err := c.StartOrRaiseEvent(t.Context(), "hello", 0, "paid", 8, one,
		client.IfExists(client.Replace)); started || err != nil {
		t.Errorf("got %v, error %v", started, err)
	}
	h.Append("one", completed("1"))
	// a problem of the API does not have started
	if started, err := replace(); started == overHTTP || !errors.Is(err, client.ErrEnded) {
		t.Errorf("repeated call: got %v, error %v", started, err)
	}
	if len(h.raised()) != 2 {
		t.Errorf("got events %q, want 2", h.raised())
	}
	if err := c.Purge(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := replace(); !errors.Is(err, client.ErrPurged) || len(h.raised()) != 2 {
		t.Errorf("repeated call after a purge: got error %v, events %q", err, h.raised())
	}
}

// If any call fails, before or after the call takes effect, a repetition results in one instance with one event.
func TestStartOrRaiseEvent_anyCallFails_repetitionRaisesOneEvent(t *testing.T) {
	t.Parallel()
	localOnly(t, "the client repeats a failed request")
	for _, id := range []string{"one", "new"} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				c, h := newInstanceInUse(t)
				h.fail, h.done = n, done
				startOrRaise := func() error {
					_, err := c.StartOrRaiseEvent(t.Context(), "bye", 0, "paid", 7, client.WithInstanceID(id),
						client.WithIdempotencyKey("k"))
					return err
				}
				if err := startOrRaise(); err == nil {
					if len(h.calls) >= n {
						t.Errorf("call %d failed, but the client returned no error", n)
					}
					break
				} else if !hasCause(err, errReset) {
					t.Fatal(err)
				}
				if err := startOrRaise(); err != nil {
					t.Errorf("%s, call %d: %v", id, n, err)
				}
				want := "paid k 7 " + h.startID(t, id)
				if got := slices.Compact(h.raised()); !slices.Equal(got, []string{want}) {
					t.Errorf("%s, call %d: got events %q, want %q", id, n, got, want)
				}
			}
		}
	}
}

// The instance ends, is purged or continues as new before the start, or between the start and the event. Only the
// incarnation that the start found receives the event.
func TestStartOrRaiseEvent_instanceChangesMeanwhile_foundIncarnationReceivesEvent(t *testing.T) {
	t.Parallel()
	continued := history.Event{Kind: history.OrchestrationContinuedAsNew}
	for name, c := range map[string]struct {
		before, change string
		started, next  bool // next: the event is for the later incarnation
		failed         error
	}{
		"ends before":             {"start", "end", false, false, client.ErrEnded},
		"is purged before":        {"start", "purge", true, true, nil},
		"is replaced before":      {"start", "replace", false, true, nil},
		"continues before":        {"start", "continue", false, false, nil},
		"ends in between":         {"send", "end", false, false, nil},
		"is purged in between":    {"send", "purge", false, false, nil},
		"is replaced in between":  {"send", "replace", false, false, nil},
		"continues in between":    {"send", "continue", false, false, nil},
		"continues and then ends": {"start", "continue and end", false, false, client.ErrEnded},
	} {
		cl, h := newInstanceInUse(t)
		was := h.startID(t, "one")
		h.do[c.before] = func() {
			if strings.HasPrefix(c.change, "continue") {
				h.Append("one", continued)
			}
			if strings.HasSuffix(c.change, "end") {
				h.Append("one", completed("1"))
			}
			if c.change == "purge" || c.change == "replace" {
				_ = h.DeleteInstance(t.Context(), "one", true)
			}
			if c.change == "replace" {
				_, _ = h.Provider.StartOrchestration(t.Context(), provider.Start{
					InstanceID: "one", StartID: "other-start", Name: "hello",
				})
			}
		}
		started, err := cl.StartOrRaiseEvent(t.Context(), "bye", 0, "paid", 7, one)
		if started != c.started || !errors.Is(err, c.failed) {
			t.Errorf("%s: got %v, error %v", name, started, err)
		}
		if c.failed != nil {
			continue
		}
		if c.next {
			was = h.startID(t, "one")
		}
		if got := h.raised(); len(got) != 1 || !strings.HasSuffix(got[0], " "+was) {
			t.Errorf("%s: got events %q, want one for %s", name, got, was)
		}
	}
}

func TestStartOrRaiseEvent_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	startOrRaise := func(orchestration, event string, data any, opts ...client.StartOption) error {
		_, err := c.StartOrRaiseEvent(t.Context(), orchestration, 0, event, data, opts...)
		return err
	}
	fresh := client.WithInstanceID("new")
	for field, err := range map[string]error{
		"instanceId":     startOrRaise("bye", "paid", 7),
		"orchestration":  startOrRaise("", "paid", 7, fresh),
		"event":          startOrRaise("bye", "", 7, fresh),
		"data":           startOrRaise("bye", "paid", make(chan int), fresh),
		"idempotencyKey": startOrRaise("bye", "paid", 7, fresh, client.WithIdempotencyKey("a\n")),
		"ifExists":       startOrRaise("bye", "paid", 7, fresh, client.IfExists("keep")),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != field {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	tooLarge := strings.Repeat("x", 200<<10)
	if large, ok := errors.AsType[*perdure.PayloadTooLargeError](
		startOrRaise("bye", "paid", tooLarge, fresh)); !ok || large.Name != "data" {
		t.Errorf("too large data: got %v", large)
	}
	if err := startOrRaise("missing", "paid", 7, one); !errors.Is(err, client.ErrUnknownOrchestration) {
		t.Errorf("unknown orchestration: got error %v", err)
	}
	if len(h.messages) > 0 || !slices.Equal(h.calls, []string{"start"}) {
		t.Errorf("got messages %v, calls %q", h.messages, h.calls)
	}
}
