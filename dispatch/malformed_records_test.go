package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// An unreadable record is copied to the dead-letter queue of its queue. The records after it are processed.
func TestRecord_malformed_becomesADeadLetter(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"not JSON":      "hello",
		"empty object":  "{}",
		"newer version": `{"v":99,"kind":"wake","instanceId":"i-1"}`,
		"unknown kind":  `{"v":1,"kind":"dance","instanceId":"i-1"}`,
		"no instance":   `{"v":1,"kind":"wake"}`,
		"wrong type":    `{"v":1,"kind":"wake","instanceId":7}`,
	} {
		for queue, url := range map[string]string{
			"inbox": "sim://inbox.fifo", "default": "sim://default", "timers": "sim://timers",
		} {
			t.Run(queue+"/"+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, simhub.Options{}, func(ctx context.Context, h *hub) {
					send := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
					if queue == "inbox" {
						send.MessageGroupId, send.MessageDeduplicationId = aws.String("g"), aws.String("d")
					}
					if _, err := h.Cloud.Queues.SendMessage(ctx, send); err != nil {
						t.Fatal(err)
					}
					if end := h.finish(h.start("chain", 1)); string(end.Output) != "1" {
						t.Errorf("the instance after the record ended with %s", end.String())
					}
					dead := h.receive(strings.Replace(url, "sim://"+queue, "sim://"+queue+"-dead", 1))
					if left := h.receive(url); len(dead) != 1 || dead[0].Body != body || len(left) > 0 {
						t.Errorf("got %d dead letters and %d records in the queue, want 1 and 0", len(dead), len(left))
					}
				})
			})
		}
	}
}

// No timer fires early.
func TestTimer_anyLength_isNotEarly(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{
		-time.Hour, 0, time.Millisecond, 999 * time.Millisecond, 15 * time.Minute, 3*time.Hour + 200*time.Millisecond,
	} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("timer", d)
				end := h.finish(in)
				if late := end.Time.Sub(in.CreatedAt) - max(d, 0); late < 0 || late > time.Second {
					t.Errorf("a timer of %v fired %v after its due time, want 0 to 1s", d, late)
				}
			})
		})
	}
}

// A timer of ten years does not overflow. A timer in the queue is resent with the maximum delay each time.
func TestTimer_tenYears_isRequeued(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Timers: dynamo.TimersRequeue}, func(ctx context.Context, h *hub) {
		h.start("timer", 10*365*24*time.Hour)
		h.turn(0)
		for hop := range 3 {
			time.Sleep(15*time.Minute + time.Second)
			timers := h.receive("sim://timers")
			if len(timers) != 1 {
				t.Fatalf("hop %d: got %d timers, want 1", hop, len(timers))
			}
			if failed := h.Renewer.HandleRecords(ctx, timers); len(failed) > 0 {
				t.Fatalf("hop %d: got failed records %v", hop, failed)
			}
			_ = h.Provider.DeleteRecords(ctx, provider.QueueTimers, timers...)
			if early := h.receive("sim://timers"); len(early) > 0 {
				t.Errorf("hop %d: the timer is visible again at once", hop)
			}
		}
	})
}
