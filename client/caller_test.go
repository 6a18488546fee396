package client_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// known is a provider that returns the identity of its credentials and counts the requests for it.
type known struct {
	*fakeprovider.Provider

	requests int
	purged   []string
}

func (k *known) Caller(context.Context) string {
	k.requests++
	return "arn:aws:iam::123456789012:user/alice"
}

func (k *known) DeleteInstance(ctx context.Context, id string, force bool) error {
	name, _ := provider.RequesterOf(ctx)
	k.purged = append(k.purged, name)
	return k.Provider.DeleteInstance(ctx, id, force)
}

// act makes each call that records a requester, and returns the recorded names in order.
func act(
	t *testing.T, ctx context.Context, //nolint:revive // t is the first parameter in this package
	c *client.Client, p *fakeprovider.Provider, id string,
) (by []string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Start(ctx, "hello", nil, client.WithInstanceID(id))
	must(err)
	p.Append(id, scheduled)
	must(c.RaiseEvent(ctx, id, "e", 1))
	must(c.Cancel(ctx, id, ""))
	must(c.CancelActivity(ctx, id, 2, ""))
	must(c.Terminate(ctx, id, ""))
	s, err := c.Status(ctx, id)
	must(err)
	by = append(by, s.StartedBy)
	sent := p.Sent()
	for _, m := range sent[len(sent)-4:] {
		by = append(by, m.RequestedBy)
	}
	return by
}

func TestClient_callerOfContextOptionOrCredentials_isRecorded(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API sets the caller")
	_, fake := setup(t)
	k := &known{Provider: fake}
	everywhere := func(got []string, want, cancel string) {
		t.Helper()
		for i, by := range got {
			if i == 2 { // a cancel always records a requester
				if by != cancel {
					t.Errorf("requester of the cancel: got %q, want %q", by, cancel)
				}
			} else if by != want {
				t.Errorf("requester of call %d: got %q, want %q", i, by, want)
			}
		}
	}
	const alice, bob = "arn:aws:iam::123456789012:user/alice", "bob's job"
	everywhere(act(t, t.Context(), connect(k), fake, "credentials"), alice, alice)
	requests := k.requests
	everywhere(act(t, t.Context(), connect(k, client.WithCaller(bob)), fake, "option"), bob, bob)
	everywhere(act(t, client.ContextWithCaller(t.Context(), "carol"), connect(k, client.WithCaller(bob)), fake,
		"context"), "carol", "carol")
	everywhere(act(t, client.ContextWithCaller(t.Context(), ""), connect(k), fake, "missing"), "",
		history.RequestedByClient)
	everywhere(act(t, t.Context(), connect(k, client.WithCaller("")), fake, "also missing"), "",
		history.RequestedByClient)
	everywhere(act(t, t.Context(), connect(fake), fake, "unknown"), "", history.RequestedByClient)
	if k.requests != requests {
		t.Error("the client requested the caller although it was given")
	}
	if err := connect(k).Purge(t.Context(), "credentials", client.Force()); err != nil || len(k.purged) != 1 ||
		k.purged[0] != alice {
		t.Errorf("requester of the purge: got %q, error %v", k.purged, err)
	}
}

// A read does not request the identity of the caller, because a read records no requester.
func TestClient_reads_doNotRequestTheCaller(t *testing.T) {
	t.Parallel()
	localOnly(t, "the API sets the caller")
	_, fake := setup(t)
	k := &known{Provider: fake}
	c := connect(k)
	mustStart(t, connect(fake), "one")
	if _, err := c.Status(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.List(t.Context(), client.ListQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Collect(c.Cancellations(t.Context(), "one", "")); err != nil || k.requests != 0 {
		t.Errorf("got %d requests for the caller, error %v, want none", k.requests, err)
	}
}
