package engine_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// piece is the data of an event: its number, and incompressible bytes.
type piece struct {
	N   int    `json:"n"`
	Pad string `json:"pad"`
}

func newPiece(n, size int) piece {
	b := make([]byte, size*3/4)
	source := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)})
	_, _ = source.Read(b) // ChaCha8 never returns an error
	return piece{n, base64.StdEncoding.EncodeToString(b)}
}

// collection is the progress of the collector.
type collection struct {
	Next, All int
	// Each is the number of events for each execution before it continues as new; 0 means all events.
	Each int
	Rest time.Duration
}

// collector returns an orchestration that receives numbered events and fails unless they arrive in order.
func collector(name string) *perdure.Registry {
	return build(func(r *perdure.Registry) {
		perdure.AddOrchestration(r, "collector", func(ctx *perdure.OrchestrationContext, c collection) (int, error) {
			for n := 0; c.Next < c.All && (c.Each == 0 || n < c.Each); n++ {
				p, err := perdure.WaitForExternalEvent[piece](ctx, name).Await(ctx)
				if err != nil {
					return 0, err
				}
				if p.N != c.Next {
					return 0, fmt.Errorf("got event %d, want %d", p.N, c.Next)
				}
				c.Next++
			}
			if c.Next == c.All {
				return c.All, nil
			}
			if _, err := perdure.CreateTimer(ctx, c.Rest).Await(ctx); err != nil {
				return 0, err
			}
			return perdure.ContinueAsNew[int](ctx, c)
		})
	})
}

// meter simulates the latency of AWS, and measures the time and memory of invocations.
type meter struct {
	crash simaws.Interceptor

	mu          sync.Mutex
	bases       map[int]uint64 // the heap at the start of each running invocation
	next        int
	longest     time.Duration
	most        uint64
	invocations int
	start       int // the largest size of a first segment of an execution
}

// heap returns the live heap at the last garbage collection.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (m *meter) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if c.Operation == "Invoke" {
		return m.invoke(next)
	}
	if _, died := simhub.Process(ctx); died {
		return simhub.ErrCrashed
	}
	time.Sleep(10 * time.Millisecond)
	if c.Operation == "Query" {
		time.Sleep(20 * time.Millisecond) // the latency of a page of 1 MB
	}
	now := heap()
	m.mu.Lock()
	m.begins(c.Input)
	for _, base := range m.bases {
		m.most = max(m.most, now-min(base, now))
	}
	m.mu.Unlock()
	if m.crash != nil {
		return m.crash(ctx, c, next)
	}
	return next()
}

// begins records the size of the first segment of a new execution.
func (m *meter) begins(input any) {
	in, ok := input.(*dynamodb.TransactWriteItemsInput)
	if !ok {
		return
	}
	for i := range in.TransactItems {
		if put := in.TransactItems[i].Put; put != nil {
			sk, _ := put.Item["sk"].(*types.AttributeValueMemberS)
			if packed, ok := put.Item["zstd"].(*types.AttributeValueMemberB); ok && sk != nil &&
				strings.HasPrefix(sk.Value, "h#0000000000") {
				m.start = max(m.start, len(packed.Value))
			}
		}
	}
}

func (m *meter) invoke(next func() error) error {
	m.mu.Lock()
	id := m.next
	m.next++
	m.bases[id] = heap()
	m.invocations++
	m.mu.Unlock()
	began := time.Now()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.bases, id)
		m.longest = max(m.longest, time.Since(began))
	}()
	return next()
}

// bounded fails the test if an invocation exceeds the time or memory limit of the function.
func (m *meter) bounded(t *testing.T, what string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("%s: %d invocations, the longest %v, the largest %d MiB of heap more than before it", what, m.invocations,
		m.longest, m.most>>20)
	if m.longest > 30*time.Second || m.most > 160<<20 {
		t.Errorf("%s: got an invocation of %v and one with %d MiB", what, m.longest, m.most>>20)
	}
}

// crashesAt returns an interceptor that crashes an invocation before or after calls with these numbers of each
// operation.
func crashesAt(before, after map[string][]int) simaws.Interceptor {
	var mu sync.Mutex
	n := map[string]int{}
	return simhub.Crash(func(c simaws.Call) (bool, bool) {
		mu.Lock()
		defer mu.Unlock()
		n[c.Operation]++
		return slices.Contains(before[c.Operation], n[c.Operation]), slices.Contains(after[c.Operation], n[c.Operation])
	})
}

// metered runs f on a hub with measured invocations.
func metered(
	t *testing.T, r *perdure.Registry, crash simaws.Interceptor, f func(ctx context.Context, h *hub, m *meter),
) {
	t.Helper()
	percent := debug.SetGCPercent(25) // frequent collections give an exact live heap
	defer debug.SetGCPercent(percent)
	runtime.GC()
	m := &meter{crash: crash, bases: map[int]uint64{}}
	withFault(t, r, m.intercept, func(ctx context.Context, h *hub) { f(ctx, h, m) })
}

// raiseEvents raises events of a size. The functions run after every hundred events, so that the queue does not have to
// hold all events.
func (h *hub) raiseEvents(ctx context.Context, id string, all, size int) {
	h.t.Helper()
	for n := range all {
		if err := h.client.RaiseEvent(ctx, id, "go", newPiece(n, size),
			client.WithEventID(fmt.Sprint("e-", n))); err != nil {
			h.t.Fatal(err)
		}
		if n%100 == 99 {
			h.ServeFor(ctx, 15*time.Second)
		}
	}
}

// collected fails the test unless the collector has completed with all events and the hub is idle.
func (h *hub) collected(ctx context.Context, id string, all int) {
	h.t.Helper()
	if s := h.status(id); s.Status != client.StatusCompleted || string(s.Output) != fmt.Sprint(all) {
		h.t.Fatalf("got status %s, output %s, failure %+v", s.Status, s.Output, s.Failure)
	}
	if err := h.CheckIdle(ctx); err != nil {
		h.t.Error(err)
	}
}

// An eternal orchestration receives a few events in each execution, while a thousand events of 190 KB arrive at once.
// Events are neither lost nor copied between executions, even if functions crash.
func TestContinueAsNew_thousandLargeEvents_areNeitherLostNorCopied(t *testing.T) {
	shortrun.Skip(t)
	//nolint:paralleltest // memory is measured
	const all, size = 1000, 190 << 10
	crash := crashesAt(
		map[string][]int{"TransactWriteItems": {7, 120}, "Query": {2, 40}},
		map[string][]int{"TransactWriteItems": {3, 50, 160}, "Query": {90, 150}, "SendMessageBatch": {30, 31}},
	)
	metered(t, collector("go"), crash, func(ctx context.Context, h *hub, m *meter) {
		h.start("c", "collector", collection{All: all, Each: 13, Rest: 10 * time.Minute})
		h.raiseEvents(ctx, "c", all, size)
		h.serve(24 * time.Hour)
		m.bounded(t, "across continue-as-new")
		h.collected(ctx, "c", all)
		t.Logf("%d executions, the largest began with %d KiB", h.status("c").ExecutionNumber, m.start>>10)
		if m.start > 256<<10 {
			t.Errorf("got an execution start of %d KiB", m.start>>10)
		}
	})
}

// A thousand events of the maximum size arrive at a blocked instance and wait for a day. Then a fixed build is
// deployed.
func TestBlockedInstance_thousandLargeEvents_areProcessedAfterFix(t *testing.T) {
	shortrun.Skip(t)
	//nolint:paralleltest // memory is measured
	const all, size = 1000, 204_000
	crash := crashesAt(
		map[string][]int{"TransactWriteItems": {7, 60}, "Query": {300}, "PutItem": {6}},
		map[string][]int{"TransactWriteItems": {50}, "Query": {3, 500}, "PutItem": {8}},
	)
	metered(t, collector("other"), crash, func(ctx context.Context, h *hub, m *meter) {
		broken := h.Orchestrators
		h.deploy(collector("go"), "good")
		h.start("c", "collector", collection{All: all})
		h.ServeFor(ctx, time.Minute)
		h.gone = h.Orchestrators
		h.Orchestrators = broken
		if err := h.Orchestrators[0].ReportBuild(ctx); err != nil {
			t.Fatal(err)
		}
		h.raiseEvents(ctx, "c", all, size)
		h.ServeFor(ctx, 24*time.Hour)
		if s := h.status("c"); s.Status != client.StatusBlocked {
			t.Fatalf("got status %s", s.Status)
		}
		m.bounded(t, "parking")
		h.deploy(collector("go"), "fixed")
		h.serve(24 * time.Hour)
		m.bounded(t, "fixed")
		h.collected(ctx, "c", all)
	})
}
