package admin_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// A reconciliation has sent some of an instance's work items, and then a redispatch writes the same progress record.
// The next attempt of the reconciliation still finds its own progress, and sends only the missing work items.
func TestReconcile_redispatchBetweenAttempts_sendsOnlyMissingWorkItems(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int{"a note": 60, "a cursor": 2600} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHub(t, simhub.Options{}, nil, func(h *lost) {
				if _, err := h.Start(h.ctx, "fan", n, client.WithInstanceID("i")); err != nil {
					t.Fatal(err)
				}
				h.ServeFor(h.ctx, time.Second)
				h.Close()
				time.Sleep(20 * time.Minute)
				h.emptied()
				sent := h.counting()
				how := provider.ReconcileOptions{Since: time.Now().Add(-time.Hour), Run: "run"}
				reconcile := func(most int64) error {
					sent.most.Store(most)
					_, err := h.Provider.ReconcileInstance(h.ctx, "i", how)
					return err
				}
				if err := reconcile(int64(n / 2)); err == nil {
					t.Fatal("no error; want a throttled call")
				}
				o, err := h.Provider.ReadOrchestration(h.ctx, &provider.OrchestrationItem{InstanceID: "i"},
					provider.Strong)
				if err != nil {
					t.Fatal(err)
				}
				sent.most.Store(int64(n * 3 / 4))
				if _, err := h.Provider.RedispatchOrchestration(h.ctx, o, provider.RedispatchFrom{}); err == nil {
					t.Fatal("no error; want a throttled call")
				}
				if err := reconcile(1 << 60); err != nil {
					t.Fatal(err)
				}
				total, twice := sent.sum()
				t.Logf("%d activities: sent %d work items", n, total)
				if total < n || twice > 0 {
					t.Errorf("sent %d work items for %d activities, %d have more than one; want one each", total, n,
						twice)
				}
			})
		})
	}
}

// counted counts the work items of each activity, and rejects work items whose activity ID is greater than most.
type counted struct {
	most atomic.Int64
	mu   sync.Mutex
	of   map[int64]int
}

// counting installs a fault that counts and limits the work items sent to the default queue.
func (h *lost) counting() *counted {
	s := &counted{of: map[int64]int{}}
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || !strings.Contains(*in.QueueUrl, "default") {
			return next()
		}
		var ids []int64
		for _, e := range in.Entries {
			w, err := wire.DecodeWorkItem(*e.MessageBody)
			if err != nil {
				h.t.Error(err)
			}
			if w.ActivityID > s.most.Load() {
				return simaws.Throttled()
			}
			ids = append(ids, w.ActivityID)
		}
		err := next()
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, id := range ids {
			if err == nil {
				s.of[id]++
			}
		}
		return err
	})
	h.fault.Store(&fault)
	return s
}

// sum returns the number of sent work items, and the number of activities with more than one work item.
func (s *counted) sum() (total, twice int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.of {
		total += n
		if n > 1 {
			twice++
		}
	}
	return total, twice
}
