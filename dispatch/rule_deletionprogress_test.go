package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// lengthy is what makes a purge long: what there is very much of, and the call that deletes it, of which a page takes as long.
type lengthy struct {
	fill    func(ctx context.Context, h *hub, in provider.Instance)
	service string
	deletes string
	takes   time.Duration
}

const pages = 30

// lengthyPurges are of instances that have very many answers of updates, segments, and payloads in the bucket: thirty pages, of ten seconds and more.
func lengthyPurges() map[string]lengthy {
	big := string(encodedText(190 << 10)) // five are a page
	return map[string]lengthy{
		"answers": {service: "DynamoDB", deletes: "DeleteItem", takes: 10 * time.Second, fill: func(ctx context.Context, h *hub, in provider.Instance) {
			for n := range 5 * pages {
				a := provider.UpdateResult{
					InstanceID: in.InstanceID, StartID: in.StartID, UpdateID: fmt.Sprint("u", n), Name: "change", Outcome: provider.UpdateCompleted, Result: history.Payload(big),
				}
				if err := h.Provider.PutUpdateResults(ctx, a); err != nil {
					h.t.Fatal(err)
				}
			}
		}},
		"segments": {service: "DynamoDB", deletes: "PutItem", takes: 10 * time.Second, fill: func(_ context.Context, h *hub, in provider.Instance) {
			for n := range 5 * pages {
				h.send(provider.Message{Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other", EventID: fmt.Sprint("e", n), Data: history.Payload(big)})
				h.turn(0)
			}
		}},
		"payloads": {service: "S3", deletes: "DeleteObjects", takes: 10 * time.Second, fill: func(ctx context.Context, h *hub, in provider.Instance) {
			for n := range provider.PayloadBatchSize * pages {
				if err := h.Provider.Payloads().PutPayload(ctx, provider.PayloadKey(in.ExecutionID, fmt.Sprintf("%06d", n)), []byte("{}")); err != nil {
					h.t.Fatal(err)
				}
			}
		}},
	}
}

// encodedText is a text of so many bytes as JSON, which does not compress.
func encodedText(bytes int) []byte { return []byte(`"` + static(1, bytes) + `"`) }

// A purge that takes five minutes says all the while that it goes on: the watch does not take it for one that has died, and no alarm sounds. Where it dies midway
// it has said so shortly before, and two minutes later the watch finishes it.
func TestR17ALongPurgeSaysThatItGoesOn(t *testing.T) {
	t.Parallel()
	for of, long := range lengthyPurges() {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("of %s, dies=%t", of, dies), func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{Registry: addChanging(registry()), Bucket: true}, func(ctx context.Context, h *hub) { h.purgeAtLength(ctx, long, dies) })
			})
		}
	}
}

func (h *hub) purgeAtLength(ctx context.Context, long lengthy, dies bool) {
	h.t.Helper()
	in := h.start("changes", changing{Events: 1})
	h.turn(0)
	long.fill(ctx, h, in)

	began := time.Now()
	var oldest time.Duration
	var died atomic.Bool
	var one sync.Mutex
	h.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Service != long.service || c.Operation != long.deletes {
			return next()
		}
		time.Sleep(long.takes)
		if now, err := h.Provider.ReadInstance(ctx, in.InstanceID); err == nil && now.Status == client.StatusDeleting {
			one.Lock()
			oldest = max(oldest, time.Since(now.UpdatedAt))
			one.Unlock()
		}
		if dies && time.Since(began) > 3*time.Minute {
			died.Store(true)
			return simhub.ErrFailed
		}
		return next()
	})
	err := h.Provider.DeleteInstance(ctx, in.InstanceID, true)
	took := time.Since(began)
	h.interfere(nil)
	if dies != (err != nil) || dies != died.Load() || took < 3*time.Minute {
		h.t.Fatalf("after %v: %v", took, err)
	}
	if oldest > time.Minute {
		h.t.Errorf("for %v it said nothing", oldest)
	}
	if dies {
		if s := must(h.Provider.ReadInstance(ctx, in.InstanceID)); s.Status != client.StatusDeleting {
			h.t.Errorf("it has died, and the instance is %s", s.Status)
		}
		time.Sleep(3 * time.Minute)
		_ = must(h.Timekeeper.Sweep(ctx))
	}
	if _, err := h.Provider.ReadInstance(ctx, in.InstanceID); !errors.Is(err, provider.ErrNotFound) || h.storedAnswers(in.InstanceID) > 0 || len(h.keysOf(ctx, in.ExecutionID)) > 0 {
		h.t.Errorf("%v, and %d answers, %d payloads are left", err, h.storedAnswers(in.InstanceID), len(h.keysOf(ctx, in.ExecutionID)))
	}
}
