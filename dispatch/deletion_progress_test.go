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

// longPurge is a purge that takes a long time. fill creates many items, and each call of the operation deletes a page
// in the duration takes.
type longPurge struct {
	fill    func(ctx context.Context, h *hub, in provider.Instance)
	service string
	deletes string
	takes   time.Duration
}

const pages = 30

// longPurges returns purges of many update results, segments and payloads, with thirty pages of at least ten
// seconds.
func longPurges() map[string]longPurge {
	big := string(encodedText(190 << 10)) // five of them fill a page
	return map[string]longPurge{
		"answers": {
			service: "DynamoDB", deletes: "DeleteItem", takes: 10 * time.Second,
			fill: func(ctx context.Context, h *hub, in provider.Instance) {
				for n := range 5 * pages {
					a := provider.UpdateResult{
						InstanceID: in.InstanceID, StartID: in.StartID, UpdateID: fmt.Sprint("u", n), Name: "change",
						Outcome: provider.UpdateCompleted, Result: history.Payload(big),
					}
					if err := h.Provider.PutUpdateResults(ctx, a); err != nil {
						h.t.Fatal(err)
					}
				}
			},
		},
		"segments": {
			service: "DynamoDB", deletes: "PutItem", takes: 10 * time.Second,
			fill: func(_ context.Context, h *hub, in provider.Instance) {
				for n := range 5 * pages {
					h.send(provider.Message{
						Kind: provider.MessageEventRaised, InstanceID: in.InstanceID, Name: "other",
						EventID: fmt.Sprint("e", n),
						Data:    history.Payload(big),
					})
					h.turn(0)
				}
			},
		},
		"payloads": {
			service: "S3", deletes: "DeleteObjects", takes: 10 * time.Second,
			fill: func(ctx context.Context, h *hub, in provider.Instance) {
				for n := range provider.PayloadBatchSize * pages {
					key := provider.PayloadKey(in.ExecutionID, fmt.Sprintf("%06d", n))
					if err := h.Provider.Payloads().PutPayload(ctx, key, []byte("{}")); err != nil {
						h.t.Fatal(err)
					}
				}
			},
		},
	}
}

// encodedText returns a JSON string that does not compress.
func encodedText(bytes int) []byte { return []byte(`"` + static(1, bytes) + `"`) }

// A purge of five minutes stores its progress regularly, so the sweeper does not regard it as abandoned, and no alarm
// is raised. If the process of the purge crashes, its last progress is recent, and the sweeper completes it two minutes
// later.
func TestR17_longPurge_storesItsProgress(t *testing.T) {
	t.Parallel()
	for of, long := range longPurges() {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash=%t", of, dies), func(t *testing.T) {
				t.Parallel()
				o := simhub.Options{Registry: addChanging(registry()), Bucket: true}
				inBubble(t, o, func(ctx context.Context, h *hub) { h.runLongPurge(ctx, long, dies) })
			})
		}
	}
}

// runLongPurge runs a long purge. If dies is true, the process of the purge crashes after three minutes and the sweeper
// completes the deletion.
func (h *hub) runLongPurge(ctx context.Context, long longPurge, dies bool) {
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
		h.t.Fatalf("the purge returned %v after %v, want a failure: %v", err, took, dies)
	}
	if oldest > time.Minute {
		h.t.Errorf("got no progress for %v, want at most 1m", oldest)
	}
	if dies {
		if s := must(h.Provider.ReadInstance(ctx, in.InstanceID)); s.Status != client.StatusDeleting {
			h.t.Errorf("after the crash of the purge: got status %s, want deleting", s.Status)
		}
		time.Sleep(3 * time.Minute)
		_ = must(h.Renewer.Sweep(ctx))
	}
	_, err = h.Provider.ReadInstance(ctx, in.InstanceID)
	results, payloads := h.storedResults(in.InstanceID), len(h.keysOf(ctx, in.ExecutionID))
	if !errors.Is(err, provider.ErrNotFound) || results > 0 || payloads > 0 {
		h.t.Errorf("got %v, %d update results and %d payloads, want none", err, results, payloads)
	}
}
