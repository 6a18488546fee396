package dispatch_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// A second caller uses the ID of an early update. It receives the stored result, even after many executions and
// updates.
func TestR31_earlyUpdateHasTheSameID_isJoined(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		first := sentUpdate("px", 1, time.Now(), 1_000_000)
		first.EventID = "same"
		h.send(first)
		h.turns()
		for n := range int64(1300) {
			h.send(sentUpdate("qx", n+1, time.Now(), 1))
			if n%10 == 9 {
				h.turns()
			}
		}
		h.turns()
		if in := h.read(sumInstance); in.ExecutionNumber < 2 {
			t.Errorf("got execution %d, want at least 2", in.ExecutionNumber)
		}
		joins := sentUpdate("rx", 1, time.Now(), 1_000_000)
		joins.EventID = "same"
		h.send(joins)
		h.turns()
		h.wantSum(`{"Total":1001300,"Operations":1301}`)
	})
}

// 1. A session processes an update of an entity and crashes before it acknowledges the message.
// 2. The entity is purged.
// 3. SQS redelivers the update. The session does not start a new entity.
func TestR31_redeliveryAfterAPurge_startsNoEntity(t *testing.T) {
	t.Parallel()
	armed := false
	intercept, crashed := crashOnce(true, func(c simaws.Call) bool {
		return armed && sendsKind(c, provider.MessageUpdateAnswered)
	})
	inBubble(t, simhub.Options{Intercept: intercept}, func(_ context.Context, h *hub) {
		h.send(sentUpdate("px", 1, time.Now(), 1))
		h.serveFor(time.Minute)
		armed = true
		h.send(sentUpdate("qx", 1, time.Now(), 2))
		h.serveFor(time.Second)
		if !crashed.Load() {
			t.Error("no process crashed")
		}
		h.wantSum(`{"Total":3,"Operations":2}`)
		h.purge(sumInstance.InstanceID)
		h.serveFor(time.Hour)
		h.wantNone(sumInstance.InstanceID)
		h.send(sentUpdate("qx", 2, time.Now(), 4))
		h.serveFor(time.Minute)
		h.wantSum(`{"Total":4,"Operations":1}`)
	})
}

// An instance with an unreadable history is terminated or purged. The callers of its open updates receive a response.
func TestR31_damagedInstanceEnds_callersReceiveAResponse(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]func(h *hub, in provider.Instance){
		"terminated": (*hub).terminate,
		"purged":     func(h *hub, in provider.Instance) { h.purge(in.InstanceID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{Registry: addHold(registry()), CacheBytes: -1},
				func(_ context.Context, h *hub) {
					in := h.startAs("c", "holds", holdInput{})
					h.turns()
					sender := h.start("caller", 1)
					h.serveFor(time.Minute)
					h.raiseNamed(in, "other")
					h.serveFor(time.Minute)
					h.damage(h.item("x#"+in.ExecutionID, "h#0000000001"))
					ends(h, in)
					h.serveFor(2 * time.Hour)
					if now := h.read(sender); now.Status != provider.StatusCompleted {
						t.Errorf("the caller is %s, want completed", now.Status)
					}
				})
		})
	}
}

// More callers join an update than its end event can list. The update ends, and all callers receive a response.
func TestR31_tooManyCallersJoin_allReceiveAResponse(t *testing.T) {
	t.Parallel()
	shortrun.Skip(t)
	const callers = 6000
	inBubble(t, simhub.Options{Registry: addHold(registry())}, func(_ context.Context, h *hub) {
		in := h.startAs("c", "holds", holdInput{})
		h.turns()
		updateResult := map[string]int{}
		var mu sync.Mutex
		h.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			err := next()
			mu.Lock()
			defer mu.Unlock()
			if batch, ok := c.Input.(*sqs.SendMessageBatchInput); ok {
				for _, e := range batch.Entries {
					m, err := wire.DecodeMessage(*e.MessageBody)
					if err != nil || m.Kind != provider.MessageUpdateAnswered {
						continue
					}
					if m.Error != nil {
						updateResult[m.Error.Reason]++
					} else {
						updateResult[string(m.Result)]++
					}
				}
			}
			return err
		})
		for n := range int64(callers) {
			m := sentUpdate(fmt.Sprintf("%026d", n), 1, time.Now(), 1)
			m.InstanceID, m.Name, m.EventID, m.Orchestration, m.Input = in.InstanceID, "hold", "same", "", nil
			m.Parent.InstanceID = longID()
			h.send(m)
			if n%100 == 99 {
				h.turns()
			}
		}
		h.raiseNamed(in, "go")
		h.serveFor(10 * time.Minute)
		h.wantStatus(in, provider.StatusRunning)
		if updateResult["5"] < 900 || updateResult["5"]+updateResult[history.RejectedLimit] != callers {
			t.Errorf("got responses %v, want %d", updateResult, callers)
		}
	})
}

// longID returns a random instance ID, which does not compress.
func longID() string {
	s := strings.Builder{}
	for s.Len() < 990 {
		s.WriteString(rand.Text())
	}
	return "p" + s.String()
}
