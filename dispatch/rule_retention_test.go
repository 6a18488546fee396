package dispatch_test

// What a retention deletes nobody asks for, so nobody would notice if it were the wrong thing. What could hurt:
//
//   - Whoever ends an instance dies before the status, or the status is written by a repeated dispatch: it would never be due.
//   - A past execution is erased that a redelivered message, or an event that was carried over, leads back to.
//   - The renewer dies in the middle, or is away for days: what was due then is behind where it looks.
//   - An instance is purged, and its id used again, while it is being deleted.
//   - The chain of executions ends in nothing: lists, deletions and dispatches that go back along it would fail.

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

// watch is a look of the renewer.
func (h *hub) watch() {
	h.t.Helper()
	if _, err := h.Timekeeper.Sweep(h.t.Context()); err != nil {
		h.t.Error(err)
	}
}

// begin starts an instance under its own id.
func (h *hub) begin(id, name string, input any) provider.Instance {
	h.t.Helper()
	in, err := h.Provider.StartOrchestration(h.t.Context(), provider.Start{InstanceID: id, Name: name, Input: encoded(h.t, input), StartID: "start-" + id})
	if err != nil {
		h.t.Fatal(err)
	}
	return in
}

// executions are the numbers of those that are left, the current one first.
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

// withRetentions has orchestrations of one name that are kept for as long as they say.
func withRetentions() *perdure.Registry {
	r := registry()
	body := func(_ *perdure.OrchestrationContext, n int) (int, error) { return n, nil }
	perdure.AddOrchestration(r, "kept", body, perdure.WithRetention(perdure.RetainForever))
	perdure.AddOrchestration(r, "brief", body, perdure.WithRetention(3*days))
	// periodic continues as new every six hours, until it has done so n times.
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

func TestR21AFinishedInstanceIsDeletedWhenItsRetentionIsOver(t *testing.T) {
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
		goneOn := map[string]int{}
		for day := range 40 {
			time.Sleep(days)
			h.watch()
			for _, id := range ids {
				if _, err := h.Provider.ReadInstance(h.t.Context(), id); errors.Is(err, provider.ErrNotFound) && goneOn[id] == 0 {
					goneOn[id] = day + 1
				}
			}
		}
		if goneOn["nothing"] != 31 || goneOn["brief"] != 4 || goneOn["kept"] != 0 {
			t.Errorf("deleted on these days: %v, want 31 as the hub says, 4 as the code says, and what is kept never", goneOn)
		}
		h.wantStubs(one.ExecutionID, 2)
		if it := h.item("i#nothing", "i"); text(it, "deleted") == "" || it["due"] != nil || it["ttl"] == nil {
			t.Errorf("there is no tombstone, but %v", it)
		}
		if now := h.read(waits); now.Status != provider.StatusRunning {
			t.Errorf("what waits is %s", now.Status)
		}
	})
}

// An end costs no call more; with a retention it costs an entry of the index, without one nothing.
func TestR21WhatARetentionCosts(t *testing.T) {
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
		t.Errorf("an end takes %v and %v units; with a retention %v and %v", calls, units, more, unitsMore)
	}
	t.Logf("an end takes %v units, with a retention %v", units, unitsMore)
}

// Interleaving: the function that ends the instance dies before it writes the status. The redelivered message has the dispatch repeated,
// and that says when it is due.
func TestR21AnEndThatIsDispatchedAgainIsDueAsWell(t *testing.T) {
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
			t.Fatalf("it is %s", now.Status)
		}
		time.Sleep(31 * days)
		h.watch()
		h.wantNone(in.InstanceID)
	})
}

// An eternal orchestration of 1,000 executions, four a day: past ones go when they are out of date, and no others; the instance goes on
// without noticing; and in the end all of it goes.
func TestR21AnEternalOrchestrationKeepsWhatItsRetentionSays(t *testing.T) {
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
			t.Fatalf("execution %d, %s", now.ExecutionNumber, now.Status)
		}
		if least < keep*4 || most > (keep+2)*4 {
			t.Errorf("from %d to %d executions are left, of which there are four a day: want those of %d days, and of one more", least, most, keep)
		}
		t.Logf("of %d executions, four a day, from %d to %d were there at a time", executions, least, most)
		left := h.executions(in.InstanceID)
		for i, n := range left {
			if n != int64(executions-i) {
				t.Fatalf("executions %v: there is a gap", left)
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

// Past executions stay for as long as a message may lead back to them, however short the retention: 14 days in a queue, and as long in its dead letters.
func TestR21PastExecutionsOutliveMessages(t *testing.T) {
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
			t.Errorf("after 29 days %d executions are left", n)
		}
		for range 7 {
			h.serveFor(days)
			h.watch()
		}
		if n := len(h.executions(in.InstanceID)); n < 30*4 || n > 32*4 {
			t.Errorf("after 36 days %d executions are left", n)
		}
	})
}

// An execution whose event another still refers to stays, and those that are younger with it.
func TestR21WhatIsReferredToStays(t *testing.T) {
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
		for i := range ids[8:] { // an event of 11 waits to this day, and one of 8 did so up to 13, which stays for the sake of the other
			h.refer(ids[8+i], ids[min(7+3*(i/5), 10)])
		}
		h.watch()
		if left := h.executions(in.InstanceID); left[len(left)-1] != 8 {
			t.Errorf("the oldest execution is %d, want 8", left[len(left)-1])
		}
		for i := range ids[8:] {
			h.refer(ids[8+i], "")
		}
		time.Sleep(days)
		h.watch()
		if left := h.executions(in.InstanceID); left[len(left)-1] < 55 {
			t.Errorf("the oldest execution is %d, though nothing refers to it any more", left[len(left)-1])
		}
	})
}

// refer sets what an execution's start refers to.
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

// Interleaving: the renewer dies at any call, and at times is away for days. What it has left is done by later looks, and nothing else
// is deleted. The instances have ended on ten days, some are large, some have continued as new, and one goes on.
func TestR21ARenewerThatDiesAndIsAwayLeavesNothing(t *testing.T) {
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
			lives := h.begin("lives", "periodic", 600)
			var over []string
			for day := range 10 {
				for i, name := range []string{"nothing", "long", "then-waits"} {
					id := fmt.Sprintf("%s-%d", name, day)
					in := h.begin(id, name, []int{1, 60, 3}[i])
					if name == "then-waits" {
						h.raise(in, "1", 1)
						h.raise(in, "2", 2)
					}
					over = append(over, id)
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
				_, _ = h.Timekeeper.Sweep(h.t.Context())
				h.interfere(nil)
				h.serveFor(time.Duration(random.IntN(30)) * time.Hour)
			}
			for range 5 {
				h.watch()
				time.Sleep(3 * time.Minute)
			}
			time.Sleep(days) // of which no executions are
			h.watch()
			for _, id := range over {
				h.wantNone(id)
			}
			left := h.executions(lives.InstanceID)
			now := h.read(lives)
			if now.Status.Terminal() || left[0] != now.ExecutionNumber || len(left) < 28*4 || len(left) > 32*4 {
				t.Errorf("seed %d: the one that goes on is %s at execution %d, and has %d from %d on", seed, now.Status, now.ExecutionNumber, len(left), left[len(left)-1])
			}
			for x, err := range h.Provider.ListExecutions(h.t.Context(), lives.InstanceID) {
				if err != nil || x.Number == now.ExecutionNumber {
					continue
				}
				h.events(provider.Instance{InstanceID: lives.InstanceID, ExecutionID: x.ExecutionID})
			}
			h.purge(lives.InstanceID)
			h.wantNone(lives.InstanceID)
		})
	}
}

// Interleaving: an instance had continued as new before its hub deleted anything, in a release that did not note which execution was
// the first. It is searched for once; the renewer dies meanwhile.
func TestR21TheOldestExecutionIsFoundByLookingBack(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: withRetentions(), Retention: 30 * days}, func(_ context.Context, h *hub) {
		in := h.begin("a", "periodic", 1000)
		h.serveFor(130 * days)
		it := h.item("i#a", "i")
		delete(it, "oldest")
		name := "perdure"
		if _, err := h.Cloud.Table.PutItem(h.t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: it}); err != nil {
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
		_, _ = h.Timekeeper.Sweep(h.t.Context())
		h.interfere(nil)
		if at := text(h.item("i#a", "i"), "seeking"); at == "" {
			t.Error("how far the search has come is not known")
		}
		time.Sleep(days)
		h.watch()
		if left := h.executions(in.InstanceID); len(left) > 32*4 {
			t.Errorf("%d executions are left", len(left))
		}
	})
}

// Interleaving: the instance is purged, and its id started anew, between the renewer's look and its deletion. The new life is none of
// its business.
func TestR21AnIDThatIsUsedAgainMeanwhileIsLetBe(t *testing.T) {
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
			if _, err := h.Provider.StartOrchestration(ctx, provider.Start{InstanceID: "a", Name: "nothing", Input: encoded(t, 2), StartID: "another"}); err != nil {
				t.Error(err)
			}
			h.serveFor(10 * time.Second)
			return next()
		})
		h.watch()
		if now := h.read(provider.Instance{InstanceID: "a"}); now.StartID != "another" || now.Status != provider.StatusCompleted {
			t.Errorf("the new life is %+v", now)
		}
		h.watch()
		if now := h.read(provider.Instance{InstanceID: "a"}); now.Status != provider.StatusCompleted {
			t.Errorf("the new life is %+v", now)
		}
	})
}
