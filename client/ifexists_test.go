package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// ending is a hub whose terminated instances end at the second read. ending records the calls, can fail one call, and
// can run a function before a call.
type ending struct {
	*fakeprovider.Provider

	calls    []string
	messages []provider.Message
	fail     int  // the number of the call that fails, from 1
	done     bool // the failing call takes effect
	do       map[string]func()
	due      string // the start ID of the incarnation that ends at the next read
}

var errReset = &provider.Error{Op: "test", Retryable: true, Err: errors.New("connection reset")}

func (h *ending) call(name string, f func() error) error {
	if do := h.do[name]; do != nil {
		delete(h.do, name)
		do()
	}
	h.calls = append(h.calls, name)
	fails := len(h.calls) == h.fail
	if fails && !h.done {
		return errReset
	}
	if err := f(); !fails {
		return err
	}
	return errReset
}

func (h *ending) StartOrchestration(ctx context.Context, s provider.Start) (in provider.Instance, err error) {
	err = h.call("start", func() error { in, err = h.Provider.StartOrchestration(ctx, s); return err })
	return in, err
}

func (h *ending) ReadInstance(ctx context.Context, id string) (in provider.Instance, err error) {
	err = h.call("read", func() error {
		in, err = h.Provider.ReadInstance(ctx, id)
		if h.due != "" && h.due == in.StartID {
			h.due = ""
			h.Append(id, history.Event{Kind: history.OrchestrationTerminated})
		}
		return err
	})
	return in, err
}

func (h *ending) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	return h.call("send", func() error {
		h.messages = append(h.messages, ms...)
		if ms[0].Kind == provider.MessageTerminate {
			h.due = ms[0].StartID
		}
		return h.Provider.EnqueueForOrchestrator(ctx, ms...)
	})
}

func (h *ending) DeleteIncarnation(ctx context.Context, id, startID string, force bool) error {
	return h.call("delete", func() error {
		in, err := h.Provider.ReadInstance(ctx, id)
		if errors.Is(err, provider.ErrNotFound) || err == nil && in.StartID != startID {
			return nil
		}
		return h.DeleteInstance(ctx, id, force)
	})
}

// newInstanceInUse returns a hub with an instance "one", and a client of the hub.
func newInstanceInUse(t *testing.T) (*client.Client, *ending) {
	t.Helper()
	h := &ending{Provider: fakeprovider.New(func() time.Time { return began }, "hello", "bye"), do: map[string]func(){}}
	c := connect(h, client.WithClock(func() time.Time {
		return began
	}), client.WithSleep(func(ctx context.Context, _ time.Duration) error {
		return ctx.Err()
	}), client.WithCaller("ann"))
	mustStart(t, c, "one")
	h.calls = nil
	return c, h
}

var one = client.WithInstanceID("one")

func (h *ending) wantCalls(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(h.calls, want) {
		t.Errorf("got calls %q, want %q", h.calls, want)
	}
}

func (h *ending) wantOne(t *testing.T, orchestration string) {
	t.Helper()
	if in, err := h.Provider.ReadInstance(t.Context(), "one"); err != nil || in.Name != orchestration ||
		in.Status != provider.StatusPending {
		t.Errorf("got instance %s with status %s, error %v; want a new %s", in.Name, in.Status, err, orchestration)
	}
}

func TestIfExists_invalidCombination_isRejected(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	for name, err := range map[string]error{
		"no id": func() error {
			_, err := c.Start(t.Context(), "bye", 0, client.IfExists(client.Replace))
			return err
		}(),
		"a key alone": func() error {
			_, err := c.Start(t.Context(), "bye", 0, client.IfExists(client.UseExisting),
				client.WithIdempotencyKey("k"))
			return err
		}(),
		"no such": func() error {
			_, err := c.Start(t.Context(), "bye", 0, one, client.IfExists("keep"))
			return err
		}(),
		"a restart": func() error {
			_, err := c.Restart(t.Context(), "one", client.IfExists(client.Replace))
			return err
		}(),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != "ifExists" {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := c.Start(t.Context(), "bye", 0, one); !errors.Is(err, client.ErrAlreadyExists) {
		t.Errorf("without IfExists: got error %v", err)
	}
	if _, err := c.Start(t.Context(), "missing", 0, one, client.IfExists(client.Replace)); !errors.Is(err,
		client.ErrUnknownOrchestration) {
		t.Errorf("unknown orchestration: got error %v", err)
	}
	h.wantOne(t, "hello")
	h.wantCalls(t, "start", "start")
}

func TestUseExisting_idInUse_keepsInstance(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	start := func(id string) {
		t.Helper()
		if got, err := c.Start(t.Context(), "bye", 0, client.WithInstanceID(id),
			client.IfExists(client.UseExisting)); err != nil || got != id {
			t.Errorf("got %q, error %v", got, err)
		}
	}
	start("one")
	h.wantOne(t, "hello")
	h.Append("one", completed("1"))
	start("one")
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status != client.StatusCompleted || len(h.messages) > 0 {
		t.Errorf("got status %s, messages %v, error %v", s.Status, h.messages, err)
	}
	h.calls = nil
	start("two")
	h.wantCalls(t, "start") // if the ID is free, the option makes no additional call
}

func TestReplace_idInUse_terminatesAndDeletesInstance(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	was, err := h.Provider.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.Replace)); err != nil || id != "one" {
		t.Fatalf("got %q, error %v", id, err)
	}
	h.wantCalls(t, "start", "send", "read", "read", "delete", "start")
	h.wantOne(t, "bye")
	want := provider.Message{
		Kind: provider.MessageTerminate, InstanceID: "one", StartID: was.StartID, Text: client.ReplacedMessage,
		RequestedBy: "ann",
	}
	if len(h.messages) != 1 || fmt.Sprint(h.messages[0]) != fmt.Sprint(want) {
		t.Errorf("got messages %+v", h.messages)
	}

	h.Append("one", completed("1"))
	h.calls = nil
	if _, err := c.Start(t.Context(), "hello", 0, one, client.IfExists(client.Replace)); err != nil {
		t.Fatal(err)
	}
	h.wantCalls(t, "start", "delete", "start") // an ended instance receives no terminate message
	h.wantOne(t, "hello")
}

// If any call of a start fails, before or after the call takes effect, a repeated start results in one instance of this
// start.
func TestReplace_anyCallFails_repeatedStartSucceeds(t *testing.T) {
	t.Parallel()
	localOnly(t, "the client repeats a failed request")
	for _, done := range []bool{false, true} {
		for n := 1; ; n++ {
			c, h := newInstanceInUse(t)
			h.fail, h.done = n, done
			replace := func() error {
				_, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.Replace),
					client.WithIdempotencyKey("k"))
				return err
			}
			err := replace()
			if err == nil {
				if len(h.calls) >= n {
					t.Errorf("call %d failed, but Start returned no error: calls %q", n, h.calls)
				}
				break
			}
			if !hasCause(err, errReset) {
				t.Fatal(err)
			}
			if err := replace(); err != nil {
				t.Errorf("retry after a failure of call %d: %v", n, err)
			}
			h.wantOne(t, "bye")
		}
	}
}

// A late repetition of a start with a key does not affect the instance of this start, or an instance that replaced it.
func TestReplace_lateRepetition_replacesNothing(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	replace := func(key, orchestration string) error {
		_, err := c.Start(t.Context(), orchestration, 0, one, client.IfExists(client.Replace),
			client.WithIdempotencyKey(key))
		return err
	}
	for _, key := range []string{"first", "first", "second"} {
		if err := replace(key, map[string]string{"first": "bye", "second": "hello"}[key]); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.messages) != 2 {
		t.Errorf("got messages %+v, want 2", h.messages)
	}
	if err := replace("first", "bye"); !errors.Is(err, client.ErrPurged) || !errors.Is(err, client.ErrAlreadyExists) {
		t.Errorf("repetition of the first start: got error %v", err)
	}
	h.wantOne(t, "hello")
	if len(h.messages) != 2 {
		t.Errorf("got messages %+v, want 2", h.messages)
	}
	if _, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.UseExisting),
		client.WithIdempotencyKey("first")); !errors.Is(err, client.ErrPurged) {
		t.Errorf("client.UseExisting: got error %v", err)
	}
}

// Another start runs between two calls of a start, for each pair of calls. The slower start replaces the instance of
// the faster start, and ends no other instance.
func TestReplace_anotherStartIsFaster_replacesItsInstance(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"read", "send", "delete"} {
		c, h := newInstanceInUse(t)
		h.do[call] = func() {
			_ = h.DeleteInstance(t.Context(), "one", true)
			if _, err := h.Provider.StartOrchestration(t.Context(),
				provider.Start{InstanceID: "one", StartID: "other-start", Name: "hello"}); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.Replace)); err != nil {
			t.Errorf("%s: got error %v", call, err)
		}
		h.wantOne(t, "bye")
		if last := h.messages[len(h.messages)-1]; last.StartID != "other-start" {
			t.Errorf("%s: got last message %+v", call, last)
		}
	}
}

// A start does not fail if the existing instance is purged after the conflict, because the ID is free.
func TestReplace_instanceIsPurgedMeanwhile_startSucceeds(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	h.do["send"] = func() { _ = h.DeleteInstance(t.Context(), "one", true) }
	if _, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.Replace)); err != nil {
		t.Error(err)
	}
	h.wantOne(t, "bye")
	h.wantCalls(t, "start", "send", "read", "delete", "start")
}

// deleting is a hub whose instance is being deleted. The instance no longer exists after a number of reads.
type deleting struct {
	*ending

	polls int
}

func (d *deleting) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	in, err := d.ending.StartOrchestration(ctx, s)
	if err != nil {
		in.Status = provider.StatusDeleting
	}
	return in, err
}

func (d *deleting) ReadInstance(ctx context.Context, id string) (provider.Instance, error) {
	if d.polls--; d.polls == 0 {
		return provider.Instance{}, errors.Join(d.DeleteInstance(ctx, id, true), provider.ErrNotFound)
	}
	in, err := d.ending.ReadInstance(ctx, id)
	in.Status = provider.StatusDeleting
	return in, err
}

func TestUseExisting_instanceIsBeingPurged_waitsAndStarts(t *testing.T) {
	t.Parallel()
	_, h := newInstanceInUse(t)
	slept := 0
	c := connect(&deleting{ending: h, polls: 3}, client.WithSleep(func(context.Context, time.Duration) error {
		slept++
		return nil
	}))
	if _, err := c.Start(t.Context(), "bye", 0, one, client.IfExists(client.UseExisting)); err != nil {
		t.Fatal(err)
	}
	h.wantOne(t, "bye")
	if slept != 2 {
		t.Errorf("got %d waits, want 2", slept)
	}
}

func TestReplace_contextEnds_returnsItsError(t *testing.T) {
	t.Parallel()
	c, h := newInstanceInUse(t)
	ctx, cancel := context.WithCancel(t.Context())
	h.do["send"] = cancel
	_, err := c.Start(ctx, "bye", 0, one, client.IfExists(client.Replace))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}
