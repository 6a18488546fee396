package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// startChild starts a child and records the child in the current execution of the parent.
func startChild(t *testing.T, c *client.Client, p *fakeprovider.Provider, parent, child string) {
	t.Helper()
	in, err := p.ReadInstance(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	mustStart(t, c, child)
	p.Append(parent, history.Event{Kind: history.SubOrchestrationScheduled, Time: began, InstanceID: child})
	p.SetParent(child, history.Parent{InstanceID: parent, ExecutionID: in.ExecutionID, EventID: 2})
}

func endAll(p *fakeprovider.Provider, ids ...string) {
	for _, id := range ids {
		p.Append(id, completed("1"))
	}
}

func wantLeft(t *testing.T, p *fakeprovider.Provider, want ...string) {
	t.Helper()
	page, err := p.ListInstances(t.Context(), provider.ListQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	left := []string{}
	for _, in := range page.Instances {
		left = append(left, in.InstanceID)
	}
	slices.Sort(left)
	if !slices.Equal(left, append([]string{}, want...)) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// family returns a hub with an ended instance "a" in its second execution. The instance has children of both
// executions, grandchildren, and children that a purge must not delete.
func family(t *testing.T) (*client.Client, *fakeprovider.Provider) {
	t.Helper()
	c, p := setup(t)
	mustStart(t, c, "a")
	startChild(t, c, p, "a", "a1")
	startChild(t, c, p, "a1", "a1x")
	startChild(t, c, p, "a1x", "a1xy")
	p.Append("a", history.Event{Kind: history.OrchestrationContinuedAsNew, Time: began})
	startChild(t, c, p, "a", "a2")
	startChild(t, c, p, "a", "lives")
	startChild(t, c, p, "lives", "below")
	mustStart(t, c, "another's")
	p.SetParent("another's", history.Parent{InstanceID: "a", ExecutionID: "of another life", EventID: 2})
	p.Append("a", history.Event{Kind: history.SubOrchestrationScheduled, Time: began, InstanceID: "another's"},
		history.Event{Kind: history.SubOrchestrationScheduled, Time: began, InstanceID: "never there"},
		history.Event{Kind: history.DetachedOrchestrationScheduled, Time: began, InstanceID: "detached"})
	mustStart(t, c, "detached")
	endAll(p, "a1xy", "a1x", "a1", "a2", "below", "another's", "detached", "a")
	return c, p
}

func TestPurge_withChildren_deletesEndedDescendants(t *testing.T) {
	t.Parallel()
	c, p := family(t)
	if err := c.Purge(t.Context(), "a", client.WithChildren()); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, p, "another's", "below", "detached", "lives")
	if err := c.Purge(t.Context(), "a", client.WithChildren()); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("again: %v", err)
	}
}

func TestPurge_withChildrenOfRunningInstanceOrForce_isRejected(t *testing.T) {
	t.Parallel()
	c, p := family(t)
	p.Append("a1", history.Event{Kind: history.TurnStarted, Time: began}) // the instance a1 runs
	all := []string{"a", "a1", "a1x", "a1xy", "a2", "another's", "below", "detached", "lives"}
	if err := c.Purge(t.Context(), "a1", client.WithChildren()); !errors.Is(err, client.ErrNotEnded) {
		t.Errorf("one that is not over: %v", err)
	}
	if f, ok := errors.AsType[*provider.FieldError](c.Purge(t.Context(), "a", client.WithChildren(),
		client.Force())); !ok || f.Field != "withChildren" {
		t.Errorf("with force: %v", f)
	}
	if err := c.Purge(t.Context(), "a", client.WithChildren(), client.IfCreatedAt(began.Add(1))); !errors.Is(err,
		client.ErrNotFound) {
		t.Errorf("another life: %v", err)
	}
	wantLeft(t, p, all...)
	if err := c.Purge(t.Context(), "a", client.WithChildren(), client.IfCreatedAt(began)); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, p, "a1", "a1x", "a1xy", "another's", "below", "detached", "lives")
}

// failingHub is a hub that fails one read or deletion, before or after the call takes effect. It counts all calls and
// the concurrent calls.
type failingHub struct {
	*fakeprovider.Provider

	mu       sync.Mutex
	n, fails int
	done     bool
	takes    time.Duration // the duration of each call, in virtual time
	now      int
	most     int
}

func (m *failingHub) call(f func() error) error {
	m.mu.Lock()
	m.n++
	fails := m.n == m.fails
	m.now++
	m.most = max(m.most, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.now--
	}()
	if m.takes > 0 {
		time.Sleep(m.takes)
	}
	if fails && !m.done {
		return errGone
	}
	if err := f(); !fails {
		return err
	}
	return errGone
}

func (m *failingHub) ReadInstance(ctx context.Context, id string) (in provider.Instance, err error) {
	err = m.call(func() error { in, err = m.Provider.ReadInstance(ctx, id); return err })
	return in, err
}

func (m *failingHub) DeleteIncarnation(ctx context.Context, id, startID string, force bool) error {
	return m.call(func() error { return m.Provider.DeleteIncarnation(ctx, id, startID, force) })
}

// After any failure, the instance exists until its ended descendants are deleted. A repeated purge deletes the rest.
func TestPurge_withChildrenAndAnyCallFails_repetitionDeletesTheRest(t *testing.T) {
	t.Parallel()
	localOnly(t, "the client repeats a failed request")
	for _, done := range []bool{false, true} {
		for n := 1; ; n++ {
			_, p := family(t)
			m := &failingHub{Provider: p, fails: n, done: done}
			c := connect(m)
			err := c.Purge(t.Context(), "a", client.WithChildren())
			if err == nil {
				if m.n >= n {
					t.Errorf("call %d failed, and nobody said so", n)
				}
				break
			}
			if !hasCause(err, errGone) {
				t.Fatal(err)
			}
			if err := c.Purge(t.Context(), "a", client.WithChildren()); err != nil &&
				!errors.Is(err, client.ErrNotFound) {
				t.Errorf("call %d, repeated: %v", n, err)
			}
			wantLeft(t, p, "another's", "below", "detached", "lives")
		}
	}
}

// A thousand children, each with two children, are purged concurrently, up to the limit.
func TestPurge_withThousandChildren_isConcurrentUpToTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := setup(t)
		mustStart(t, c, "a")
		for i := range 1000 {
			child := fmt.Sprintf("a%d", i)
			startChild(t, c, p, "a", child)
			for j := range 2 {
				startChild(t, c, p, child, fmt.Sprintf("%sx%d", child, j))
				endAll(p, fmt.Sprintf("%sx%d", child, j))
			}
			endAll(p, child)
		}
		endAll(p, "a")
		m := &failingHub{Provider: p, takes: time.Millisecond}
		if err := connect(m).Purge(t.Context(), "a", client.WithChildren()); err != nil {
			t.Fatal(err)
		}
		wantLeft(t, p)
		if m.most != 17 { // 16 concurrent deletions, and the caller
			t.Errorf("%d calls at once", m.most)
		}
	})
}

func TestPurge_withChildrenAndCorruptHistory_returnsErrCorrupt(t *testing.T) {
	t.Parallel()
	c, p := family(t)
	in, err := p.ReadInstance(t.Context(), "a1x")
	if err != nil {
		t.Fatal(err)
	}
	p.Damage(in.ExecutionID, fmt.Errorf("h#1: %w", provider.ErrCorrupt))
	if err := c.Purge(t.Context(), "a", client.WithChildren()); !errors.Is(err, provider.ErrCorrupt) ||
		!overHTTP && !strings.Contains(err.Error(), `"a1x"`) {
		t.Errorf("%v", err)
	}
	if _, err := p.ReadInstance(t.Context(), "a"); err != nil {
		t.Errorf("it is gone, and what is below it cannot be found: %v", err)
	}
	if err := c.Purge(t.Context(), "a1x"); err != nil {
		t.Fatal(err)
	}
	if err := c.Purge(t.Context(), "a", client.WithChildren()); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, p, "a1xy", "another's", "below", "detached", "lives")
}
