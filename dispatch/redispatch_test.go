package dispatch_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// A redispatch skips outputs that are known to be sent, and resends by workers do not multiply work items.

// half makes half of all calls fail for an hour, depending on their content and the number of tries.
func (h *hub) half() {
	began, tries := time.Now(), map[string]int{}
	h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
		about := c.Operation
		if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok {
			about = *in.Entries[0].MessageBody
		}
		if about == "ReceiveMessage" { // made by the test
			return next()
		}
		h.mu.Lock()
		tries[about]++
		sum := fnv.New64a()
		_, _ = fmt.Fprint(sum, about, tries[about])
		fails := time.Since(began) < time.Hour && rand.New(rand.NewPCG(sum.Sum64(), 1)).Float64() < 0.5
		if fails {
			h.calls = slices.DeleteFunc(h.calls, func(made simaws.Call) bool { return made.Number == c.Number })
		}
		h.mu.Unlock()
		if fails {
			return simhub.ErrFailed
		}
		return next()
	})
}

// Half of all calls fail for an hour, so SQS redelivers the message of a turn repeatedly. Every redispatch skips the
// outputs that SQS has accepted, for turns of any size.
func TestR9_halfOfCallsFailForAnHour_fewOutputsAreSentAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20, 300, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: wideRegistry(), Environments: 3}, func(_ context.Context, h *hub) {
				h.start("wide", n)
				h.half()
				deliveries := 0
				for end := time.Now().Add(2 * time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
					if records := h.receive("sim://inbox.fifo"); len(records) > 0 {
						failed := h.Orchestrators[deliveries%3].HandleRecords(h.t.Context(), records)
						if deliveries++; len(failed) == 0 {
							_ = h.Provider.DeleteRecords(h.t.Context(), "inbox", records...)
						}
					}
				}
				sent, all := sentBy(h.made()), 0
				// ignore a status refresh
				maps.DeleteFunc(sent, func(about string, _ int) bool { return !strings.HasSuffix(about, " timer 0") })
				for _, times := range sent {
					all += times
				}
				most := slices.Max(slices.Collect(maps.Values(sent)))
				t.Logf("%d activities, %d deliveries of their turn: sent %.2f times each, one of them %d times",
					n, deliveries, float64(all)/float64(n), most)
				if len(sent) != n || float64(all) > 2.5*float64(n) || most > 5 {
					t.Errorf("got %d of %d outputs sent by %d messages, one of them %d times", len(sent), n, all, most)
				}
			})
		})
	}
}

// A message may be delivered a hundred times, and outputs that one redispatch has sent are not sent again. This costs
// one read and one write in total, and one read for each delivery. It costs nothing if all outputs are settled.
func TestR9_redispatch_sendsEachOutputOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	inBubble(t, simhub.Options{Registry: wideRegistry(), Environments: 2}, func(ctx context.Context, h *hub) {
		in := h.start("everything", n)
		records := h.receive("sim://inbox.fifo")
		for i := range 10 {
			h.Orchestrators[i%2].HandleRecords(ctx, records)
		}
		for about, times := range sentBy(h.made()) {
			if times != 2 { // by the first dispatch, which recorded nothing, and by the second
				t.Errorf("%s was sent %d times, want 2", about, times)
			}
		}
		notes := 0
		for _, c := range h.made() {
			if put, ok := c.Input.(*dynamodb.PutItemInput); ok && strings.HasPrefix(text(put.Item, "sk"), "o#") {
				notes++
			}
		}
		if note := h.item("x#"+in.ExecutionID, "o#0000000002#taken"); notes != 1 || note["ttl"] == nil {
			t.Errorf("got %d notes, the last is %v", notes, note)
		}
		if err := h.Provider.DeleteInstance(ctx, in.InstanceID, true); err != nil {
			t.Fatal(err)
		}
		if note := h.item("x#"+in.ExecutionID, "o#0000000002#taken"); note != nil {
			t.Errorf("purge left %v", note)
		}
	})
}

// Half of all calls fail for an hour, so a worker cannot send most outcomes at once. This must not multiply copies of
// work items.
func TestR13_halfOfCallsFail_workItemsDoNotMultiply(t *testing.T) {
	shortrun.Skip(t)
	t.Parallel()
	sent, ran, all := 0, 0, 0
	const seeds, n = 20, 20
	for seed := range uint64(seeds) {
		p := newProblemHub()
		o := simhub.Options{
			Registry: p.registry(), Environments: 3, Schedule: &simhub.Schedule{
				Seed: seed, Fail: 0.5,
				FaultDuration: outage,
			}, EndOnRedelivery: true, Begins: p.begins,
			Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
				err := next()
				if err == nil {
					p.see(c)
				}
				return err
			},
		}
		inBubble(t, o, func(ctx context.Context, h *hub) {
			h.start("fan", n)
			if err := h.Scheduler.Run(ctx, 48*time.Hour); err != nil {
				t.Errorf("-seed=%d: %v", seed, err)
			}
		})
		for activity, times := range p.sent {
			sent, ran, all = max(sent, times), max(ran, p.ran[activity]), all+times
		}
	}
	t.Logf("%d hubs of %d activities: got %.2f work items each, at most %d; at most %d starts",
		seeds, n, float64(all)/seeds/n, sent, ran)
	if sent > 5 || ran > 12 || all > 2*seeds*n {
		t.Errorf("work items were sent up to %d times, and started up to %d times", sent, ran)
	}
}
