package admin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// lost is a hub that runs instances of all kinds until the test restores its table from a backup.
type lost struct {
	*simhub.Hub
	*client.Client
	*operator

	t    *testing.T
	ctx  context.Context //nolint:containedctx // the synctest bubble owns the context
	seed *rand.Rand
	// cutIn is the number of calls until the backup. If cutIn is negative, intercept makes no more backups.
	cutIn  atomic.Int64
	backup simaws.Backup
	fault  atomic.Pointer[simaws.Interceptor]

	mu   sync.Mutex
	runs map[string]int // counts runs of each activity since the restore
	back bool
	// faulty makes calls fail at random.
	faulty bool
}

// ran records that the code of an activity has started, if the table was restored.
func (h *lost) ran(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if info := perdure.ActivityInfoFrom(ctx); h.back {
		h.runs[fmt.Sprintf("%s #%d", info.ExecutionID, info.ActivityID)]++
	}
}

// withLost runs f on a hub with the same orchestrations, but without faults and without a restore.
func withLost(t *testing.T, f func(h *lost)) {
	t.Helper()
	onHub(t, simhub.Options{BatchSize: 1}, nil, f)
}

// onHub runs f on a hub with the options o. If fill is not nil, fill adds orchestrations to the registry of the hub.
func onHub(t *testing.T, o simhub.Options, fill func(h *lost, r *perdure.Registry), f func(h *lost)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &lost{t: t, ctx: t.Context(), seed: rand.New(rand.NewPCG(1, 0)), runs: map[string]int{}}
		o.Registry, o.Intercept = h.registry(true), h.intercept
		if fill != nil {
			fill(h, o.Registry)
		}
		hub, err := simhub.New(o)
		if err != nil {
			t.Fatal(err)
		}
		h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
		f(h)
		h.Close()
		synctest.Wait()
	})
}

// lose starts instances of every kind and backs up the table at a random moment. The hub then continues to run.
// lose restores the backup, so that the later changes are lost, and calls f.
// The parameter each is the number of instances of a kind. The parameter within limits the run time before the backup.
// One call in a hundred fails while the hub runs.
func lose(t *testing.T, seed uint64, each int, within time.Duration, f func(h *lost)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &lost{t: t, ctx: t.Context(), seed: rand.New(rand.NewPCG(seed, 0)), runs: map[string]int{}}
		h.cutIn.Store(1 << 60)
		hub, err := simhub.New(simhub.Options{Registry: h.registry(false), Environments: 2, Intercept: h.intercept})
		if err != nil {
			t.Fatal(err)
		}
		h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
		h.startAll(each)
		if seed%4 == 1 {
			h.startLarge()
		}
		h.setFaults(true)
		h.ServeFor(h.ctx, 3*time.Minute)
		h.setFaults(false)
		h.disturb(each)
		h.setFaults(true)
		h.ServeFor(h.ctx, time.Duration(h.below(int64(within))))
		h.cutIn.Store(1 + h.below(200)) // with 0, intercept would make no backup
		h.ServeFor(h.ctx, 10*time.Minute)
		if h.cutIn.Swap(-1) > 0 { // the hub made too few calls
			h.backup = h.Cloud.Table.Backup()
		}
		h.setFaults(false)
		h.Close()
		synctest.Wait()
		time.Sleep(20 * time.Minute) // messages in flight are visible again
		h.Cloud.Table.Restore(h.backup)
		f(h)
		h.Close()
		synctest.Wait()
	})
}

// intercept injects faults, and makes the backup when cutIn reaches 0.
func (h *lost) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if fault := h.fault.Load(); fault != nil {
		return (*fault)(ctx, c, next)
	}
	if h.cutIn.Load() > 0 && h.chance() {
		return errors.New("it failed")
	}
	err := next()
	if h.cutIn.Add(-1) == 0 {
		h.backup = h.Cloud.Table.Backup()
	}
	return err
}

func (h *lost) setFaults(is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faulty = is
}

// chance reports whether the next call fails.
func (h *lost) chance() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faulty && h.seed.IntN(100) == 0
}

// below returns a random number from 0 to n-1.
func (h *lost) below(n int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seed.Int64N(n)
}

// startLarge starts an instance whose first turn schedules more activities than the hub sends at once.
func (h *lost) startLarge() {
	h.t.Helper()
	if _, err := h.Start(h.ctx, "fan", 1200, client.WithInstanceID("fan-large")); err != nil {
		h.t.Fatal(err)
	}
}

func (h *lost) startAll(each int) {
	h.t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		for i := range each {
			opts := []client.StartOption{client.WithInstanceID(fmt.Sprintf("%s-%d", kind, i))}
			if kind == "delayed" {
				opts = append(opts, client.WithDelay(time.Duration(i%60)*time.Minute))
			}
			if _, err := h.Start(h.ctx, kind, kinds[kind], opts...); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// disturb raises events, and cancels, terminates and purges instances. Every second purge stops halfway.
func (h *lost) disturb(each int) {
	h.t.Helper()
	for i := range each {
		id := func(kind string) string { return fmt.Sprintf("%s-%d", kind, i) }
		err := errors.Join(h.RaiseEvent(h.ctx, id("event-early"), "e", 1),
			h.Cancel(h.ctx, id("saga-cancelled"), "by the test"))
		if err != nil {
			h.t.Fatal(err)
		}
		_ = h.Terminate(h.ctx, id("terminated"), "by the test") // the instance may have ended already
		purging, stop := context.WithCancel(h.ctx)
		if i%2 == 0 {
			var calls atomic.Int64
			crash := simaws.Interceptor(func(ctx context.Context, _ simaws.Call, next func() error) error {
				if calls.Add(1) > int64(3+i%5) {
					stop()
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return next()
			})
			h.fault.Store(&crash)
		}
		_ = h.Purge(purging, id("purged"))
		h.fault.Store(nil)
		stop()
	}
}

// begin creates another hub on the restored table.
// If newQueues is empty, the hub uses the old queues. Otherwise, the hub uses new queues.
func (h *lost) begin(newQueues string) {
	h.t.Helper()
	h.mu.Lock()
	h.back = true
	h.mu.Unlock()
	hub, err := simhub.New(simhub.Options{
		Registry: h.registry(true), Environments: 2, On: h.Hub, NewQueues: newQueues, BuildID: "fixed",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.Hub, h.Client, h.operator = hub, client.New(hub.Provider), admin.New(hub.Provider)
}
