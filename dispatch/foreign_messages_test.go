package dispatch_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// putRaw sends a body to a message group of the inbox.
func (h *hub) putRaw(group, body string) {
	h.t.Helper()
	out, err := h.Cloud.Queues.SendMessageBatch(h.t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(h.Provider.Config().InboxURL), Entries: []sqstypes.SendMessageBatchRequestEntry{{
			Id: aws.String("1"), MessageBody: &body, MessageGroupId: &group,
			MessageDeduplicationId: aws.String(rand.Text()),
		}},
	})
	if err != nil || len(out.Failed) > 0 {
		h.t.Fatal(out, err)
	}
}

// reasons returns the errors of the inbox's dead letters. It deletes the dead letters, because each of them blocks its
// group.
func (h *hub) reasons() (all []string) {
	h.t.Helper()
	url := h.Provider.Config().DeadLetters[provider.QueueInbox]
	for {
		out, err := h.Cloud.Queues.ReceiveMessage(h.t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"},
		})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			return all
		}
		for i := range out.Messages {
			all = append(all, *out.Messages[i].MessageAttributes["error"].StringValue)
			handle := out.Messages[i].ReceiptHandle
			entries := []sqstypes.DeleteMessageBatchRequestEntry{{Id: aws.String("1"), ReceiptHandle: handle}}
			input := &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries}
			if _, err := h.Cloud.Queues.DeleteMessageBatch(h.t.Context(), input); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// 1. An event of an instance is received but not yet processed.
// 2. A message for the same instance arrives in another message group, with a higher sequence number.
// 3. The session rejects that message and does not move the watermark, so the event does not count as a redelivery.
func TestMessage_inAnotherGroup_doesNotMoveTheWatermark(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{Registry: sleeper(2, "add")}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		h.turn(0)
		h.raise(in, "own", 1)
		own := h.receive(h.Provider.Config().InboxURL)
		h.putRaw("another's",
			`{"v":1,"kind":"eventRaised","instanceId":"i-1","name":"add","eventId":"foreign","data":40}`)
		if failed := h.turn(0); len(failed) > 0 {
			t.Errorf("got %d failed records, want none", len(failed))
		}
		if failed := h.Orchestrators[0].HandleRecords(t.Context(), own); len(failed) > 0 {
			t.Errorf("got %d failed records, want none", len(failed))
		}
		_ = h.Provider.DeleteRecords(t.Context(), provider.QueueInbox, own...)
		h.raise(in, "more", 2)
		if end := h.finish(in); string(end.Output) != "3" {
			t.Errorf("the instance ended with %s, want the sum of its own events", end.Output)
		}
		if got := h.reasons(); len(got) != 1 || !strings.Contains(got[0], "group") {
			t.Errorf("got dead letters %q, want one about the group", got)
		}
	})
}

// Messages that clients may not send, and messages of another hub, become dead letters at the first delivery, with a
// reason. Other messages of the group continue at once.
func TestMessage_invalid_becomesADeadLetterAtOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1100)
	start := func(more string) string {
		return `{"v":1,"kind":"start","instanceId":"i-1","name":"sleeper","startId":"s"` + more + `}`
	}
	event := func(name, id, more string) string {
		n, _ := json.Marshal(name)
		i, _ := json.Marshal(id)
		return fmt.Sprintf(`{"v":1,"kind":"eventRaised","instanceId":"i-1","name":%s,"eventId":%s,"data":1%s}`, n, i,
			more)
	}
	tags := map[string]string{}
	for i := range 17 {
		tags[fmt.Sprint(i)] = "v"
	}
	many, _ := json.Marshal(tags)
	bad := []struct{ mentions, body string }{
		{"hub", event("add", "e", `,"hub":"another"`)},
		{"hub", `{"v":1,"kind":"terminate","instanceId":"i-1","hub":"another"}`},
		{"name", event(long[:257], "e", "")},
		{"name", event("a\nb", "e", "")},
		{"eventId", event("add", long[:257], "")},
		{"eventId", event("add", "\u0000", "")},
		{"tags", start(`,"tags":` + string(many))},
		{"tags", start(`,"tags":{"k":"` + long[:257] + `"}`)},
		{"tags", start(`,"tags":{"":"v"}`)},
		{"startId", `{"v":1,"kind":"cancel","instanceId":"i-1","startId":"` + long + `"}`},
		{"reason", `{"v":1,"kind":"cancel","instanceId":"i-1","reason":"` + long[:257] + `"}`},
		{"executionId", `{"v":1,"kind":"wake","instanceId":"i-1","executionId":"` + long[:257] + `"}`},
		{"version", start(`,"version":"` + strings.Repeat("x", 17<<10) + `"`)},
		{"instanceId", `{"v":1,"kind":"wake","instanceId":"` + long + `"}`},
		{"instanceId", `{"v":1,"kind":"wake","instanceId":"i-1\u0007"}`},
		{"instanceId", `{"v":1,"kind":"wake","instanceId":"j"}`},
	}
	inBubble(t, simhub.Options{Registry: sleeper(len(bad)+1, "add")}, func(_ context.Context, h *hub) {
		in := h.start("sleeper", 0)
		group := h.receive(h.Provider.Config().InboxURL)[0].Group
		for i, b := range bad {
			h.raise(in, fmt.Sprint(i), 1)
			h.putRaw(group, b.body)
		}
		h.raise(in, "last", 1)
		begun := time.Now()
		end := h.finish(in)
		took := end.Time.Sub(begun)
		if end.Kind != history.OrchestrationCompleted || took > 2*time.Minute { // the wake was in flight
			t.Errorf("ended with %s after %v, want a completion within 2m", end.String(), took)
		}
		reasons := h.reasons()
		if len(reasons) != len(bad) {
			t.Fatalf("got %d dead letters, want %d", len(reasons), len(bad))
		}
		for i, b := range bad {
			if !strings.Contains(reasons[i], b.mentions+" ") {
				t.Errorf("%s: got reason %q", b.body[:min(len(b.body), 100)], reasons[i])
			}
		}
		h.checkIdle()
	})
}

// A work item and a timer of another hub have no effect.
func TestMessage_ofAnotherHub_hasNoEffect(t *testing.T) {
	t.Parallel()
	inBubble(t, simhub.Options{}, func(_ context.Context, h *hub) {
		item := provider.Record{ID: "1", Body: `{"v":1,"instanceId":"i-1","executionId":"x","activityId":3,` +
			`"name":"inc","queue":"default","attempt":1,"hub":"another"}`}
		timer := provider.Record{ID: "2", Body: `{"v":1,"instanceId":"i-1","executionId":"x","timerId":3,` +
			`"fireAt":"2026-01-01T00:00:00Z","hub":"another"}`}
		if items, bad := h.Provider.DecodeWorkItems(h.t.Context(), []provider.Record{item}); len(items) != 0 ||
			len(bad) != 1 {
			t.Errorf("got %d work items, want none", len(items))
		}
		if timers, bad := h.Provider.DecodeTimers([]provider.Record{timer}); len(timers) != 0 || len(bad) != 1 {
			t.Errorf("got %d timers, want none", len(timers))
		}
		for _, own := range []string{`"test"`, `""`} { // earlier releases write no hub
			item.Body = strings.Replace(item.Body, `"another"`, own, 1)
			items, bad := h.Provider.DecodeWorkItems(h.t.Context(), []provider.Record{item})
			if len(items) != 1 || len(bad) != 0 || items[0].Hub != "" {
				t.Errorf("hub %s: got unreadable records %v, want one work item", own, bad)
			}
			item.Body = strings.Replace(item.Body, own, `"another"`, 1)
		}
	})
}
