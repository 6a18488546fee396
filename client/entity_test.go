package client_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// entities is a hub with the entity "sum", whose operations return their input.
func entities() (*client.Client, *fakeprovider.Provider) {
	h := fakeprovider.New(time.Now, "@sum", "bye")
	h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
		return &provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: m.Data}
	})
	return connect(h, client.WithQuerier(h)), h
}

func TestCallEntity_repeatedCalls_startEntityOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, h := entities()
		for n, want := range []string{"7", "8"} {
			if got, err := c.CallEntity(t.Context(), "sum", "k", "add", 7+n); err != nil || string(got) != want {
				t.Errorf("got %s, error %v", got, err)
			}
		}
		in, err := h.ReadInstance(t.Context(), perdure.EntityInstanceID("sum", "k"))
		if err != nil || in.Name != perdure.EntityOrchestrationName("sum") {
			t.Errorf("got %+v, error %v", in, err)
		}
		for _, m := range h.Sent() {
			if m.Kind == provider.MessageUpdate && m.StartID != in.StartID {
				t.Errorf("the call has the start ID of another incarnation: %+v", m)
			}
		}
		same := client.WithUpdateID("u")
		for _, input := range []int{3, 4} {
			if got, err := c.CallEntity(t.Context(), "sum", "k", "add", input, same); err != nil || string(got) != "3" {
				t.Errorf("got %s, error %v", got, err)
			}
		}
		h.Append(in.InstanceID, history.Event{Kind: history.OrchestrationTerminated, Time: time.Now()})
		if _, err := c.CallEntity(t.Context(), "sum", "k", "add", 1); !errors.Is(err, client.ErrEnded) {
			t.Errorf("call of an ended entity: got error %v", err)
		}
	})
}

func TestCallEntity_invalidName_isRejected(t *testing.T) {
	t.Parallel()
	c, h := entities()
	for field, call := range map[string][3]string{
		"entity": {"", "k", "add"}, "key": {"sum", "", "add"}, "update": {"sum", "k", ""},
		"instanceId": {"sum", strings.Repeat("k", 1024), "add"}, "orchestration": {"unknown", "k", "add"},
	} {
		_, err := c.CallEntity(t.Context(), call[0], call[1], call[2], 1)
		e, ok := errors.AsType[*provider.FieldError](err)
		if unknown := errors.Is(err, client.ErrUnknownOrchestration); field == "orchestration" && !unknown ||
			field != "orchestration" && (!ok || e.Field != field) {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	for _, entity := range []string{"a@b", "@a"} { // ("a@b", "c") and ("a", "b@c") would have the same ID
		_, called := c.CallEntity(t.Context(), entity, "k", "add", 1)
		_, stateErr := c.EntityState(t.Context(), entity, "k")
		for _, err := range []error{called, stateErr} {
			if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != "entity" {
				t.Errorf("%s: got error %v", entity, err)
			}
		}
	}
	if len(h.Sent()) > 0 {
		t.Errorf("got messages %+v, want none", h.Sent())
	}
}

func TestEntityState_withOrWithoutState_returnsStateOrErrNotFound(t *testing.T) {
	t.Parallel()
	c, h := entities()
	response, failed := json.RawMessage(`{"Total":7}`), error(nil)
	h.SetQueryFunc(func(provider.QueryRequest) (json.RawMessage, error) { return response, failed })
	if got, err := c.EntityState(t.Context(), "sum", "k"); err != nil || string(got) != string(response) {
		t.Errorf("got %s, error %v", got, err)
	}
	response = json.RawMessage("null")
	if _, err := c.EntityState(t.Context(), "sum", "k"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
	failed = provider.ErrNotFound
	if _, err := c.EntityState(t.Context(), "sum", "k"); !errors.Is(err, client.ErrNotFound) {
		t.Error(err)
	}
}

func TestStartOrUpdate_missingOrExistingInstance_startsOnlyIfMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, h := entities()
		var results []string
		for _, call := range []struct{ key, data string }{{"a", "1"}, {"a", "2"}, {"b", "3"}} {
			got, started, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", json.RawMessage(call.data),
				client.WithInstanceID("one"), client.WithIdempotencyKey(call.key))
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, string(got))
			if want := call.key == "a"; started != want {
				t.Errorf("started by key %s: got %v", call.key, started)
			}
		}
		if !slices.Equal(results, []string{"1", "1", "3"}) {
			t.Errorf("got results %q", results)
		}
		h.Append("one", completed("1"))
		if got, _, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", 9, client.WithInstanceID("one"),
			client.WithIdempotencyKey("b")); err != nil || string(got) != "3" {
			t.Errorf("update of an ended instance: got %s, error %v", got, err)
		}
		if _, _, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", 9, client.WithInstanceID("one")); !errors.Is(err,
			client.ErrEnded) {
			t.Error(err)
		}
		got, started, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", 9, client.WithInstanceID("one"),
			client.IfExists(client.Replace))
		if err != nil || !started || string(got) != "9" {
			t.Errorf("ended instance: got %s, %v, error %v", got, started, err)
		}
		in, err := h.ReadInstance(t.Context(), "one")
		if sent := h.Sent(); err != nil || sent[len(sent)-1].StartID != in.StartID {
			t.Errorf("got last message %+v, error %v", sent[len(sent)-1], err)
		}
	})
}

// The errors name the arguments of the caller.
func TestStartOrUpdate_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	c, h := entities()
	fresh := client.WithInstanceID("new")
	send := func(orchestration, update string, input, data any, opts ...client.StartOption) error {
		_, _, err := c.StartOrUpdate(t.Context(), orchestration, input, update, data, opts...)
		return err
	}
	for field, err := range map[string]error{
		"instanceId":     send("bye", "say", 0, 7),
		"orchestration":  send("", "say", 0, 7, fresh),
		"update":         send("bye", "", 0, 7, fresh),
		"input":          send("bye", "say", make(chan int), 7, fresh),
		"data":           send("bye", "say", 0, make(chan int), fresh),
		"idempotencyKey": send("bye", "say", 0, 7, fresh, client.WithIdempotencyKey("a\n")),
	} {
		if f, ok := errors.AsType[*provider.FieldError](err); !ok || f.Field != field {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	if err := send("missing", "say", 0, 7, fresh); !errors.Is(err, client.ErrUnknownOrchestration) {
		t.Errorf("unknown orchestration: got error %v", err)
	}
	if len(h.Sent()) > 0 {
		t.Errorf("got messages %+v, want none", h.Sent())
	}
}

// The update is for the incarnation that the start found. The client does not read the instance again, and a later
// incarnation does not receive the update.
func TestStartOrUpdate_laterIncarnation_doesNotReceiveUpdate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, h := newInstanceInUse(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			return &provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: m.Data}
		})
		got, started, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", 7, one)
		if err != nil || started || string(got) != "7" {
			t.Errorf("got %s, %v, error %v", got, started, err)
		}
		h.wantCalls(t, "start", "send")

		was := h.startID(t, "one")
		h.UpdateWith(func(provider.Message) *provider.UpdateResult { return nil })
		h.do["send"] = func() {
			_ = h.DeleteInstance(t.Context(), "one", true)
			_, _ = h.Provider.StartOrchestration(t.Context(), provider.Start{
				InstanceID: "one", StartID: "other-start", Name: "hello",
			})
		}
		if _, started, err := c.StartOrUpdate(t.Context(), "bye", 0, "say", 8, one); started ||
			!errors.Is(err, client.ErrNotFound) {
			t.Errorf("got %v, error %v", started, err)
		}
		if last := h.messages[len(h.messages)-1]; last.StartID != was {
			t.Errorf("got last message %+v", last)
		}
	})
}
