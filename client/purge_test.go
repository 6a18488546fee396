package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

func TestPurge_endedOrForced_deletesInstance(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	for _, id := range []string{"one", "over"} {
		mustStart(t, c, id)
	}
	p.Append("over", completed("1"))
	if err := c.Purge(t.Context(), "one"); !errors.Is(err, client.ErrNotEnded) {
		t.Errorf("running instance: got error %v", err)
	}
	if s, err := c.Status(t.Context(), "one"); err != nil || s.Status.Terminal() {
		t.Errorf("after a rejected purge: got status %s, error %v", s.Status, err)
	}
	for id, opts := range map[string][]client.PurgeOption{"over": nil, "one": {client.Force()}} {
		if err := c.Purge(t.Context(), id, opts...); err != nil {
			t.Errorf("%s: got error %v", id, err)
		}
		if err := c.Purge(t.Context(), id, opts...); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("%s, second purge: got error %v", id, err)
		}
	}
	if f, ok := errors.AsType[*provider.FieldError](c.Purge(t.Context(), "a\n")); !ok || f.Field != "instanceId" {
		t.Errorf("invalid ID: got %v", f)
	}
}

// midway is a hub whose instances are being deleted, so that they have no terminal event.
type midway struct{ *fakeprovider.Provider }

func (m midway) ReadInstance(ctx context.Context, id string) (provider.Instance, error) {
	in, err := m.Provider.ReadInstance(ctx, id)
	in.Status = provider.StatusDeleting
	return in, err
}

func TestStatus_instanceIsBeingPurged_isDeleting(t *testing.T) {
	t.Parallel()
	whole, p := setup(t)
	mustStart(t, whole, "one")
	c := connect(midway{p})
	for name, read := range map[string]func(context.Context, string) (client.Status, error){
		"Status": c.Status, "Wait": c.Wait,
	} {
		if s, err := read(t.Context(), "one"); err != nil || s.Status != client.StatusDeleting || s.Output != nil ||
			s.Failure != nil {
			t.Errorf("%s: got %+v, error %v", name, s, err)
		} else if _, err := client.Result[int](s); err == nil || !strings.Contains(err.Error(), "is being purged") {
			t.Errorf("%s: Result: %v", name, err)
		}
	}
	if err := c.RaiseEvent(t.Context(), "one", "e", nil); !errors.Is(err, client.ErrEnded) {
		t.Errorf("event for a purged instance: got error %v", err)
	}
	if got := ids(t, c.List(t.Context(), client.ListQuery{Status: client.StatusDeleting}),
		func(s client.Status) string {
			return s.InstanceID
		}); got != "" {
		t.Errorf("list by the stale index: got %s", got)
	}
}

// Between a read and a write, the incarnation of an ID can end and another one can start. The write does not affect the
// later incarnation.
func TestPurge_ifCreatedAt_deletesOnlyThatIncarnation(t *testing.T) {
	t.Parallel()
	c, p := setup(t)
	mustStart(t, c, "one")
	p.Append("one", completed("1"))
	seen, err := c.Status(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []time.Time{seen.CreatedAt.Add(-time.Millisecond), seen.CreatedAt.Add(time.Millisecond)} {
		err := c.Purge(t.Context(), "one", client.IfCreatedAt(other))
		if !errors.Is(err, client.ErrNotFound) || !overHTTP && !strings.Contains(err.Error(), "was created at") {
			t.Errorf("IfCreatedAt(%v) for an instance created at %v: got error %v", other, seen.CreatedAt, err)
		}
	}
	if _, err := c.Status(t.Context(), "one"); err != nil {
		t.Errorf("rejected purge: Status: %v", err)
	}
	if err := c.Purge(t.Context(), "one", client.IfCreatedAt(seen.CreatedAt)); err != nil {
		t.Errorf("matching IfCreatedAt: %v", err)
	}
	if _, err := c.Status(t.Context(), "one"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("after the purge: got %v", err)
	}
}
