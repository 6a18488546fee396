package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// updating runs a test with an instance that does not respond.
func updating(t *testing.T, test func(t *testing.T, p *fakeprovider.Provider, c *client.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := fakeprovider.New(time.Now, "hello")
		c := connect(p)
		mustStart(t, c, "one")
		test(t, p, c)
	})
}

// respondIn makes the instance respond to the update u1 after a delay.
func respondIn(t *testing.T, p *fakeprovider.Provider, d time.Duration) {
	t.Helper()
	in, err := p.ReadInstance(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(d, func() {
		if err := p.PutUpdateResults(context.WithoutCancel(t.Context()), provider.UpdateResult{
			InstanceID: "one", StartID: in.StartID, UpdateID: "u1", Outcome: provider.UpdateCompleted,
			Result: history.Payload(`"done"`),
		}); err != nil {
			t.Error(err)
		}
	})
}

// sentUpdates returns the number of sent updates.
func sentUpdates(p *fakeprovider.Provider) (n int) {
	for _, m := range p.Sent() {
		if m.Kind == provider.MessageUpdate {
			n++
		}
	}
	return n
}

// A caller waits until the handler returns, even while reads fail, and sends the update once.
func TestUpdate_slowHandlerAndFailingReads_waitsForResult(t *testing.T) {
	t.Parallel()
	updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
		t.Helper()
		respondIn(t, p, time.Hour)
		time.AfterFunc(time.Minute, func() {
			p.FailWith(&provider.Error{Op: "DynamoDB.GetItem", Retryable: true, Err: errors.New("throttled")})
		})
		time.AfterFunc(30*time.Minute, func() { p.FailWith(nil) })
		from := time.Now()
		got, err := c.Update(t.Context(), "one", "address", "Main St", client.WithUpdateID("u1"))
		if err != nil || string(got) != `"done"` {
			t.Errorf("got result %s, error %v", got, err)
		}
		if late := time.Since(from) - time.Hour; late < 0 || late > time.Second {
			t.Errorf("result received %s late", late)
		}
		if n := sentUpdates(p); n != 1 && !overHTTP { // each request of the API sends the message again
			t.Errorf("got %d messages, want 1", n)
		}
	})
}

// A call whose context ends returns the status of the instance. A call with the same ID continues to wait.
func TestUpdate_contextEnds_returnsUpdatePending(t *testing.T) {
	t.Parallel()
	updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
		t.Helper()
		respondIn(t, p, time.Hour)
		short, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		_, err := c.Update(short, "one", "address", nil, client.WithUpdateID("u1"))
		e, notified := errors.AsType[*client.UpdateError](err)
		if !notified || e.Code != client.UpdatePending || e.UpdateID != "u1" ||
			e.Status != client.StatusPending && e.Status != client.StatusRunning ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
		if got, err := c.Update(t.Context(), "one", "address", nil, client.WithUpdateID("u1")); err != nil ||
			string(got) != `"done"` {
			t.Errorf("got result %s, error %v", got, err)
		}
		if n := sentUpdates(p); n != 2 && !overHTTP { // the first message may be lost
			t.Errorf("got %d messages, want 2", n)
		}
	})
}

// A context can end before the first request of the HTTP API has a response. The update is on its way.
func TestUpdate_contextEndsSoon_returnsUpdatePending(t *testing.T) {
	t.Parallel()
	updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
		t.Helper()
		short, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		_, err := c.Update(short, "one", "address", nil, client.WithUpdateID("u1"))
		e, notified := errors.AsType[*client.UpdateError](err)
		if !notified || e.Code != client.UpdatePending || !errors.Is(err, context.DeadlineExceeded) ||
			sentUpdates(p) != 1 {
			t.Errorf("got error %v, %d messages, want a pending update and one message", err, sentUpdates(p))
		}
		if _, err := c.Update(short, "one", "address", nil); err == nil || sentUpdates(p) > 2 {
			t.Errorf("after the end of the context: %v", err)
		}
	})
}

// If the instance ends, the client reads the result again, because the result is written before the end. Without a
// result, the instance did not accept the update.
func TestUpdate_instanceEndsMeanwhile_returnsResultOrErrEnded(t *testing.T) {
	t.Parallel()
	for _, responded := range []bool{false, true} {
		updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
			t.Helper()
			if responded {
				respondIn(t, p, time.Minute)
			}
			time.AfterFunc(time.Minute, func() { p.Append("one", completed(`"end"`)) })
			day, stop := context.WithTimeout(t.Context(), 24*time.Hour)
			defer stop()
			got, err := c.Update(day, "one", "address", nil, client.WithUpdateID("u1"))
			if responded && (err != nil || string(got) != `"done"`) || !responded && !errors.Is(err, client.ErrEnded) {
				t.Errorf("responded=%t: got %s, error %v", responded, got, err)
			}
			n := sentUpdates(p)
			if _, err := c.Update(t.Context(), "one", "address", nil); !errors.Is(err, client.ErrEnded) ||
				sentUpdates(p) != n {
				t.Errorf("ended instance: got error %v", err)
			}
		})
	}
}

// A purged instance and a later instance with the same ID do not accept the update.
func TestUpdate_instanceIsPurgedMeanwhile_returnsErrNotFound(t *testing.T) {
	t.Parallel()
	for _, continued := range []bool{false, true} {
		updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
			t.Helper()
			time.AfterFunc(time.Minute, func() {
				if err := p.DeleteInstance(context.WithoutCancel(t.Context()), "one", true); err != nil {
					t.Error(err)
				}
				if continued {
					mustStart(t, c, "one")
					respondIn(t, p, 0) // the response is for the update of the next incarnation
				}
			})
			day, stop := context.WithTimeout(t.Context(), 24*time.Hour)
			defer stop()
			if got, err := c.Update(day, "one", "address", nil, client.WithUpdateID("u1")); !errors.Is(err,
				client.ErrNotFound) {
				t.Errorf("new execution=%t: got %s, error %v", continued, got, err)
			}
		})
	}
}

// The client rejects an invalid update with the name of the field, and sends no message. An update that cannot be sent
// is not pending.
func TestUpdate_invalidArgument_isRejected(t *testing.T) {
	t.Parallel()
	updating(t, func(t *testing.T, p *fakeprovider.Provider, c *client.Client) {
		t.Helper()
		long := strings.Repeat("x", 257)
		for _, bad := range []struct {
			instance, update, id string
			input                any
			field                string
		}{
			{"", "address", "u1", nil, "instanceId"},
			{"one", "", "u1", nil, "update"},
			{"one", long, "u1", nil, "update"},
			{"one", "address", "", nil, "updateId"},
			{"one", "address", "a\x00", nil, "updateId"},
			{"one", "address", long, nil, "updateId"},
			{"one", "address", "u1", func() {}, "input"},
			{"one", "address", "u1", strings.Repeat("x", 200<<10), "input"},
		} {
			_, err := c.Update(t.Context(), bad.instance, bad.update, bad.input, client.WithUpdateID(bad.id))
			if err == nil || !strings.Contains(err.Error(), bad.field) {
				t.Errorf("%.20s %.20q %.20q: got %.200v, want %s", bad.instance, bad.update, bad.id, err, bad.field)
			}
		}
		down := errors.New("denied")
		p.FailWith(down)
		if _, err := c.Update(t.Context(), "one", "address", nil); !hasCause(err, down) {
			t.Errorf("got error %v", err)
		}
		if n := sentUpdates(p); n != 0 {
			t.Errorf("got %d messages, want none", n)
		}
	})
}

// endsBehind is a hub whose instance responds and ends directly after a read that found no result.
type endsBehind struct {
	*fakeprovider.Provider

	reads int
	then  func()
}

// ReadUpdate implements provider.Instances.
func (h *endsBehind) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	a, err := h.Provider.ReadUpdate(ctx, instanceID, updateID)
	const behind = 4 // earlier reads belong to the send and to the first read of the instance
	if h.reads++; h.reads == behind {
		h.then()
	}
	return a, err
}

// The result may be written between the read of the result and the read of the ended instance. The client then reads
// the result again and finds it.
func TestUpdate_resultIsWrittenBetweenReads_isFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &endsBehind{Provider: fakeprovider.New(time.Now, "hello")}
		c := connect(h)
		mustStart(t, c, "one")
		h.then = func() {
			respondIn(t, h.Provider, 0)
			synctest.Wait()
			h.Append("one", completed(`"end"`))
		}
		if got, err := c.Update(t.Context(), "one", "address", nil, client.WithUpdateID("u1")); err != nil ||
			string(got) != `"done"` {
			t.Errorf("got result %s, error %v", got, err)
		}
	})
}
