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

// A record that cannot be read must neither be lost nor block what comes behind it: it is copied to the dead letters of its
// queue, and the records after it go on.
func TestMalformedRecordsGoToTheDeadLetters(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"not JSON":        "hello",
		"empty object":    "{}",
		"a later version": `{"v":99,"kind":"wake","instanceId":"i-1"}`,
		"unknown kind":    `{"v":1,"kind":"dance","instanceId":"i-1"}`,
		"no instance":     `{"v":1,"kind":"wake"}`,
		"wrong type":      `{"v":1,"kind":"wake","instanceId":7}`,
	} {
		for queue, url := range map[string]string{"inbox": "sim://inbox.fifo", "default": "sim://default", "timers": "sim://timers"} {
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
						t.Errorf("the instance behind it ended with %s", end.String())
					}
					dead := h.receive(strings.Replace(url, "sim://"+queue, "sim://"+queue+"-dead", 1))
					if left := h.receive(url); len(dead) != 1 || dead[0].Body != body || len(left) > 0 {
						t.Errorf("%d dead letters, %d left in the queue", len(dead), len(left))
					}
				})
			})
		}
	}
}

// No timer is early, whatever its length.
func TestTimersOfAnyLength(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond, 999 * time.Millisecond, 15 * time.Minute, 3*time.Hour + 200*time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
				in := h.start("timer", d)
				end := h.finish(in)
				if late := end.Time.Sub(in.CreatedAt) - max(d, 0); late < 0 || late > time.Second {
					t.Errorf("a timer of %v was late by %v", d, late)
				}
			})
		})
	}
}

// Ten years do not overflow, and a timer that hops is held as long as a queue can hold it.
func TestATimerOfTenYearsIsHeld(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Timers: dynamo.TimersRequeue}, func(ctx context.Context, h *hub) {
		h.start("timer", 10*365*24*time.Hour)
		h.turn(0)
		for hop := range 3 {
			time.Sleep(15*time.Minute + time.Second)
			timers := h.receive("sim://timers")
			if len(timers) != 1 {
				t.Fatalf("hop %d: %d timers", hop, len(timers))
			}
			if failed := h.Timekeeper.HandleRecords(ctx, timers); len(failed) > 0 {
				t.Fatalf("hop %d: failed %v", hop, failed)
			}
			_ = h.Provider.DeleteRecords(ctx, provider.QueueTimers, timers...)
			if early := h.receive("sim://timers"); len(early) > 0 {
				t.Errorf("hop %d: the timer is back at once", hop)
			}
		}
	})
}
