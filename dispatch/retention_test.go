package dispatch_test

// A retention deletes without a request, so a wrong deletion could remain unnoticed. Interleavings of these tests:
//
//   - The process that ends an instance crashes before it writes the status, or a redispatch writes the status. The
//     instance must still have a deletion day.
//   - A redelivered message or a carried-over event refers to a past execution that was erased.
//   - The renewer crashes during a sweep, or does not run for days, so that due days are in the past.
//   - An instance is purged and its ID started again during its deletion.
//   - The chain of executions is interrupted. Lists, deletions and dispatches that follow it would fail.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

const days = 24 * time.Hour

// watch runs one sweep.
func (h *hub) watch() {
	h.t.Helper()
	if _, err := h.Renewer.Sweep(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// begin starts an instance with the given ID.
func (h *hub) begin(id, name string, input any) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{
		InstanceID: id, Name: name, Input: encoded(h.t, input), StartID: "start-" + id,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// executions returns the numbers of the remaining executions, the current one first.
func (h *hub) executions(id string) (numbers []int64) {
	h.t.Helper()
	for x, err := range h.Provider.ListExecutions(h.t.Context(), id) {
		if err != nil {
			h.t.Fatalf("after %v: %v", numbers, err)
		}
		numbers = append(numbers, x.Number)
	}
	return numbers
}

// withRetentions returns a registry with orchestrations that set their own retention.
func withRetentions() *perdure.Registry {
	r := registry()
	body := func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil }
	perdure.AddOrchestration(r, "kept", body, perdure.WithRetention(perdure.RetainForever))
	perdure.AddOrchestration(r, "brief", body, perdure.WithRetention(3*days))
	// periodic continues as new n times, every six hours
	perdure.AddOrchestration(r, "periodic", periodic)
	return r
}

func periodic(ctx *perdure.OrchestrationContext, n int) (int, error) {
	if n == 0 {
		return perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
	}
	if _, err := perdure.CreateTimer(ctx, 6*time.Hour).Await(ctx); err != nil {
		return 0, err
	}
	return perdure.ContinueAsNew[int](ctx, n-1)
}

func TestR21_retentionExpires_instanceIsDeleted(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: withRetentions(), Retention: 30 * days}, func(_ context.Context, h *hub) {
		time.Sleep(time.Hour) // virtual time begins at midnight, when days end
		ids := []string{"nothing", "kept", "brief"}
		for _, id := range ids {
			h.begin(id, id, 1)
		}
		waits := h.begin("waits", "sums", 0)
		one := h.read(provider.Instance{InstanceID: "nothing"})
		h.serveFor(time.Minute)
		deletedOn := map[string]int{}
		for day := range 40 {
			time.Sleep(days)
			h.watch()
			for _, id := range ids {
				if _, err := h.Provider.ReadInstance(h.t.Context(), id); errors.Is(err, provider.ErrNotFound) &&
					deletedOn[id] == 0 {
					deletedOn[id] = day + 1
				}
			}
		}
		if deletedOn["nothing"] != 31 || deletedOn["brief"] != 4 || deletedOn["kept"] != 0 {
			t.Errorf("got deletion days %v, want 31 by the hub, 4 by the code, and none for kept", deletedOn)
		}
		h.wantStubs(one.ExecutionID, 2)
		if it := h.item("i#nothing", "i"); text(it, "deleted") == "" || it["due"] != nil || it["ttl"] == nil {
			t.Errorf("got item %v, want a tombstone", it)
		}
		if now := h.read(waits); now.Status != provider.StatusRunning {
			t.Errorf("waiting instance: got status %s, want Running", now.Status)
		}
	})
}

// An end makes no additional call. A retention costs one index entry.
func TestR21_retention_costsOneIndexEntry(t *testing.T) {
	t.Parallel()
	cost := func(retention time.Duration) (calls map[string]int64, units float64) {
		inBubble(t, simhub.Options{Retention: retention}, func(_ context.Context, h *hub) {
			h.start("nothing", 1)
			h.Cloud.ResetCounts()
			h.turn(0)
			calls, units = h.Cloud.Counts(), h.Cloud.Capacity().Write
		})
		return calls, units
	}
	calls, units := cost(0)
	more, unitsMore := cost(days)
	if fmt.Sprint(calls) != fmt.Sprint(more) || unitsMore != units+1 {
		t.Errorf("an end takes %v and %v units; with a retention %v and %v units", calls, units, more, unitsMore)
	}
	t.Logf("an end takes %v units, with a retention %v", units, unitsMore)
}

// Interleaving: the function that ends the instance crashes before it writes the status. The redelivered message causes
// a redispatch, which writes the deletion day.
func TestR21_statusWrittenByRedispatch_hasDeletionDay(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Environments: 2, Retention: 30 * days}, func(_ context.Context, h *hub) {
		in := h.start("nothing", 1)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "UpdateItem" {
				return simhub.ErrCrashed
			}
			return next()
		})
		h.turn(0)
		h.interfere(nil)
		h.serveFor(time.Hour)
		if now := h.read(in); now.Status != provider.StatusCompleted {
			t.Fatalf("got status %s, want Completed", now.Status)
		}
		time.Sleep(31 * days)
		h.watch()
		h.wantNone(in.InstanceID)
	})
}

// An eternal orchestration has 1,000 executions, four per day. Past executions are erased only when their retention has
// passed. The instance continues, and is deleted completely at the end.
func TestR21_eternalOrchestration_keepsExecutionsForTheRetention(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	const executions, keep = 1000, 30
	inBubble(t, simhub.Options{Registry: withRetentions(), Retention: keep * days}, func(_ context.Context, h *hub) {
		in := h.begin("eternal", "periodic", executions-1)
		most, least := 0, executions
		for day := range executions/4 + 1 {
			h.serveFor(days)
			h.watch()
			if day == keep/2 || day%50 == keep+5 {
				n := len(h.executions(in.InstanceID))
				if most = max(most, n); day > keep {
					least = min(least, n)
				}
			}
		}
		now := h.read(in)
		if now.ExecutionNumber != executions || now.Status != provider.StatusRunning {
			t.Fatalf("got execution %d with status %s", now.ExecutionNumber, now.Status)
		}
		if least < keep*4 || most > (keep+2)*4 {
			t.Errorf("got %d to %d remaining executions at four per day, want those of %d days and one more",
				least, most, keep)
		}
		t.Logf("of %d executions, four per day, %d to %d existed at a time", executions, least, most)
		left := h.executions(in.InstanceID)
		for i, n := range left {
			if n != int64(executions-i) {
				t.Fatalf("executions %v have a gap", left)
			}
		}
		h.raise(in, "last", 1)
		h.serveFor(time.Hour)
		for range keep + 1 {
			time.Sleep(days)
			h.watch()
		}
		h.wantNone(in.InstanceID)
	})
}

// Past executions remain while a message may refer to them, even if the retention is shorter: 14 days in a queue, and
// 14 more as a dead letter.
func TestR21_shortRetention_pastExecutionsOutliveMessages(t *testing.T) {
	t.Parallel()
	r := withRetentions()
	perdure.AddOrchestration(r, "short", periodic, perdure.WithRetention(time.Hour))
	inBubble(t, simhub.Options{Registry: r}, func(_ context.Context, h *hub) {
		in := h.begin("a", "short", 400)
		for range 29 {
			h.serveFor(days)
			h.watch()
		}
		if n := len(h.executions(in.InstanceID)); n < 29*4 {
			t.Errorf("after 29 days: got %d executions", n)
		}
		for range 7 {
			h.serveFor(days)
			h.watch()
		}
		if n := len(h.executions(in.InstanceID)); n < 30*4 || n > 32*4 {
			t.Errorf("after 36 days: got %d executions", n)
		}
	})
}

// An execution remains while a later execution refers to one of its events. All executions after the referenced one
// also remain.
func TestR21_executionIsReferencedByALaterOne_isKept(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: withRetentions(), Retention: 30 * days}, func(_ context.Context, h *hub) {
		in := h.begin("a", "periodic", 300)
		h.serveFor(45 * days)
		var ids []string
		for x, err := range h.Provider.ListExecutions(h.t.Context(), in.InstanceID) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, x.ExecutionID)
		}
		slices.Reverse(ids)
		// an event of execution 11 is still referenced, and execution 13, which must remain, referred to an event of
		// execution 8
		for i := range ids[8:] {
			h.refer(ids[8+i], ids[min(7+3*(i/5), 10)])
		}
		h.watch()
		if left := h.executions(in.InstanceID); left[len(left)-1] != 8 {
			t.Errorf("got oldest execution %d, want 8", left[len(left)-1])
		}
		for i := range ids[8:] {
			h.refer(ids[8+i], "")
		}
		time.Sleep(days)
		h.watch()
		if left := h.executions(in.InstanceID); left[len(left)-1] < 55 {
			t.Errorf("got oldest execution %d although nothing refers to it", left[len(left)-1])
		}
	})
}

// refer sets the reference of an execution's start.
func (h *hub) refer(executionID, to string) {
	h.t.Helper()
	it := h.item("x#"+executionID, "h#0000000000")
	delete(it, "refs")
	if to != "" {
		it["refs"] = &ddbtypes.AttributeValueMemberS{Value: to}
	}
	name := "perdure"
	if _, err := h.Cloud.Table.PutItem(h.t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
		h.t.Fatal(err)
	}
}

// Interleaving: the renewer crashes at any call, and sometimes does not run for days. Later sweeps complete its work,
// and nothing else is deleted. The instances ended on ten days. Some are large, some have continued as new, and one is
// running.
func TestR21_renewerDiesOrPauses_laterSweepsDeleteEverythingDue(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	r := withRetentions()
	perdure.AddOrchestration(r, "long", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		for range n {
			if _, err := perdure.CallActivity(ctx, inc, 1).Await(ctx); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	for seed := range uint64(3) {
		inBubble(t, simhub.Options{Registry: r, Retention: 30 * days}, func(_ context.Context, h *hub) {
			random := rand.New(rand.NewPCG(seed, 1))
			running := h.begin("lives", "periodic", 600)
			var ended []string
			for day := range 10 {
				for i, name := range []string{"nothing", "long", "then-waits"} {
					id := fmt.Sprintf("%s-%d", name, day)
					in := h.begin(id, name, []int{1, 60, 3}[i])
					if name == "then-waits" {
						h.raise(in, "1", 1)
						h.raise(in, "2", 2)
					}
					ended = append(ended, id)
				}
				h.serveFor(days)
			}
			h.serveFor(22 * days)
			for range 50 {
				calls, dies := 0, random.IntN(120)
				h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if c.Service != "DynamoDB" {
						return next()
					}
					h.mu.Lock()
					calls++
					dead := calls > dies
					last := calls == dies
					h.mu.Unlock()
					if dead {
						return simhub.ErrCrashed
					}
					if err := next(); err != nil || !last {
						return err
					}
					return simhub.ErrCrashed
				})
				_, _ = h.Renewer.Sweep(h.t.Context())
				h.interfere(nil)
				h.serveFor(time.Duration(random.IntN(30)) * time.Hour)
			}
			for range 5 {
				h.watch()
				time.Sleep(3 * time.Minute)
			}
			time.Sleep(days) // a day without executions
			h.watch()
			for _, id := range ended {
				h.wantNone(id)
			}
			left := h.executions(running.InstanceID)
			now := h.read(running)
			if now.Status.Terminal() || left[0] != now.ExecutionNumber || len(left) < 28*4 || len(left) > 32*4 {
				t.Errorf("seed %d: running instance has status %s at execution %d, and %d executions from %d on",
					seed, now.Status, now.ExecutionNumber, len(left), left[len(left)-1])
			}
			for x, err := range h.Provider.ListExecutions(h.t.Context(), running.InstanceID) {
				if err != nil || x.Number == now.ExecutionNumber {
					continue
				}
				h.events(provider.Instance{InstanceID: running.InstanceID, ExecutionID: x.ExecutionID})
			}
			h.purge(running.InstanceID)
			h.wantNone(running.InstanceID)
		})
	}
}

// Interleaving: an instance continued as new in a release that did not record the first execution. The sweeper searches
// for the first execution once, and crashes during the search.
func TestR21_oldestExecutionIsNotRecorded_sweeperFindsIt(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: withRetentions(), Retention: 30 * days}, func(_ context.Context, h *hub) {
		in := h.begin("a", "periodic", 1000)
		h.serveFor(130 * days)
		it := h.item("i#a", "i")
		delete(it, "oldest")
		name := "perdure"
		if _, err := h.Cloud.Table.PutItem(h.t.Context(),
			&dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
			t.Fatal(err)
		}
		reads := 0
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation == "GetItem" {
				h.mu.Lock()
				reads++
				dies := reads == 500
				h.mu.Unlock()
				if dies {
					return simhub.ErrFailed
				}
			}
			return next()
		})
		_, _ = h.Renewer.Sweep(h.t.Context())
		h.interfere(nil)
		if at := text(h.item("i#a", "i"), "seeking"); at == "" {
			t.Error("the progress of the search was not stored")
		}
		time.Sleep(days)
		h.watch()
		if left := h.executions(in.InstanceID); len(left) > 32*4 {
			t.Errorf("got %d executions, want at most 128", len(left))
		}
	})
}

// Interleaving: the instance is purged, and its ID started again, between the renewer's read and its deletion. The new
// incarnation is unaffected.
func TestR21_idIsReusedBeforeTheDeletion_newIncarnationIsKept(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Retention: 15 * days}, func(ctx context.Context, h *hub) {
		h.begin("a", "nothing", 1)
		h.serveFor(time.Hour)
		time.Sleep(16 * days)
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Operation != "TransactWriteItems" {
				return next()
			}
			h.interfere(nil)
			h.purge("a")
			if _, err := h.Provider.StartOrchestration(ctx,
				provider.Start{
					InstanceID: "a", Name: "nothing", Input: encoded(t, 2),
					StartID: "another",
				}); err != nil {
				t.Error(err)
			}
			h.serveFor(10 * time.Second)
			return next()
		})
		h.watch()
		if now := h.read(provider.Instance{InstanceID: "a"}); now.StartID != "another" ||
			now.Status != provider.StatusCompleted {
			t.Errorf("got %+v, want the new incarnation Completed", now)
		}
		h.watch()
		if now := h.read(provider.Instance{InstanceID: "a"}); now.Status != provider.StatusCompleted {
			t.Errorf("got %+v, want the new incarnation Completed", now)
		}
	})
}
