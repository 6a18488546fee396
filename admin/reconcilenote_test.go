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
)

// A reconciliation has sent a part of an instance's work, and an ordinary dispatch is repeated meanwhile, which writes
// the same note. The next try of the reconciliation knows its own note, and sends only what is missing.
func TestARedispatchKeepsTheNoteOfAReconciliation(t *testing.T) {
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
					t.Fatal("no call failed")
				}
				o, err := h.Provider.ReadOrchestration(h.ctx, &provider.OrchestrationItem{InstanceID: "i"},
					provider.Strong)
				if err != nil {
					t.Fatal(err)
				}
				sent.most.Store(int64(n * 3 / 4))
				if _, err := h.Provider.RedispatchOrchestration(h.ctx, o, provider.RedispatchFrom{}); err == nil {
					t.Fatal("no call failed")
				}
				if err := reconcile(1 << 60); err != nil {
					t.Fatal(err)
				}
				total, twice := sent.sum()
				t.Logf("%d activities: %d work items", n, total)
				if total < n || twice > 0 {
					t.Errorf("%d work items of %d activities, %d of them twice or more; want each once", total, n,
						twice)
				}
			})
		})
	}
}

// counted counts work items by their activities, and refuses those of activities with greater numbers than most.
type counted struct {
	most atomic.Int64
	mu   sync.Mutex
	of   map[int64]int
}

func (h *lost) counting() *counted {
	s := &counted{of: map[int64]int{}}
	fault := simaws.Interceptor(func(_ context.Context, c simaws.Call, next func() error) error {
		in, ok := c.Input.(*sqs.SendMessageBatchInput)
		if !ok || !strings.Contains(*in.QueueUrl, "default") {
			return next()
		}
		var ids []int64
		for _, e := range in.Entries {
			w, err := provider.DecodeWorkItem(*e.MessageBody)
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

// sum returns how many work items were sent, and how many activities have more than one.
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
