package simaws_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

func TestStandardQueue_receivedMessage_isHiddenUntilItsTimeout(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
	for _, body := range []string{"a", "b", "c"} {
		d.send(body)
	}

	first := d.wantOf(2, "a", "b")
	d.want("c")
	d.want()
	wantCode(t, d.remove(first[0]), "")

	d.add(10*time.Second - 1)
	d.want()
	d.add(1)
	d.send("d")
	d.want("b", "c", "d")
}

func TestStandardQueue_delayedMessages_areOrderedByVisibility(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{})
	d.sendDelayed("late", 2)
	d.sendDelayed("early", 1)
	d.sendDelayed("also early", 1)
	d.want()
	d.add(time.Second)
	d.send("now")
	d.want("early", "also early", "now")
	d.add(time.Second)
	d.want("late")
}

func TestReceiveMessage_secondReceive_reportsSystemAttributes(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{VisibilityTimeout: time.Second})
	d.send("a")
	d.add(500 * time.Millisecond)
	d.want("a")
	d.add(time.Second)

	got := d.want("a")[0].Attributes
	want := map[string]string{
		"SentTimestamp": "1735787045000", "ApproximateFirstReceiveTimestamp": "1735787045500",
		"ApproximateReceiveCount": "2",
	}

	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestStandardQueue_staleReceipt_deletesNothing(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{VisibilityTimeout: time.Second})
	d.send("a")

	stale := d.want("a")[0]
	d.add(time.Second)

	latest := d.want("a")[0]

	wantCode(t, d.remove(stale), "")
	wantCode(t, d.setVisibility(stale, 5), "InvalidParameterValue")
	d.add(time.Second)
	wantCode(t, d.setVisibility(latest, 5), "AWS.SimpleQueueService.MessageNotInflight")

	latest = d.want("a")[0] // the stale receipt deleted nothing
	d.add(time.Second)
	wantCode(t, d.remove(latest), "") // expired, but the receipt of the latest delivery
	d.want()
	wantCode(t, d.remove(latest), "")
	wantCode(t, d.setVisibility(latest, 5), "InvalidParameterValue")

	latest.ReceiptHandle = new(string)
	wantCode(t, d.remove(latest), "ReceiptHandleIsInvalid")
	wantCode(t, d.setVisibility(latest, 5), "ReceiptHandleIsInvalid")
}

func TestChangeMessageVisibility_moreThanTwelveHours_isRejected(t *testing.T) {
	t.Parallel()

	const twelveHours = 43200

	d := newDesk(t, "work", simaws.QueueConfig{})
	d.send("a")
	m := d.want("a")[0]

	wantCode(t, d.setVisibility(m, 60), "")
	d.add(59 * time.Second)
	d.want()
	wantCode(t, d.setVisibility(m, twelveHours), "InvalidParameterValue") // longer than 12 hours since the receive
	wantCode(t, d.setVisibility(m, twelveHours+1), "InvalidParameterValue")
	wantCode(t, d.setVisibility(m, -1), "InvalidParameterValue")
	wantCode(t, d.setVisibility(m, twelveHours-59), "")
	wantCode(t, d.setVisibility(m, 0), "")
	d.want("a")
}

func TestDeadLetterQueue_maxReceiveCountIsReached_getsTheMessage(t *testing.T) {
	t.Parallel()

	for _, suffix := range []string{"", ".fifo"} {
		t.Run("queue"+suffix, func(t *testing.T) {
			t.Parallel()

			now := newClock()
			c := simaws.New(simaws.WithClock(now.time))
			dead := &desk{now, t, c, c.Queues.Create("dead"+suffix, simaws.QueueConfig{})}
			d := &desk{now, t, c, c.Queues.Create("work"+suffix, simaws.QueueConfig{
				VisibilityTimeout: time.Second, MaxReceiveCount: 2, DeadLetterQueue: "dead" + suffix,
			})}

			send := d.send
			if suffix != "" {
				send = func(body string) { d.sendTo("g", body) }
			}

			send("poison")
			send("good")

			for range 2 {
				d.wantOf(1, "poison")
				now.add(time.Second)
				dead.want()

				if suffix == "" {
					d.wantOf(1, "good")
					now.add(time.Second)
				}
			}

			if suffix == "" {
				d.want()
				dead.want("poison", "good")

				return
			}

			d.want("good")

			m := dead.want("poison")[0]
			if m.Attributes["ApproximateReceiveCount"] != "1" ||
				m.Attributes["DeadLetterQueueSourceArn"] != "arn:aws:sqs:us-east-1:000000000000:work.fifo" {
				t.Fatal(m.Attributes)
			}
		})
	}
}

func TestDisorder_sameSeed_repeatsOrderAndDuplicates(t *testing.T) {
	t.Parallel()

	run := func(seed uint64) (bodies []string, ids map[string]int) {
		d := newDesk(t, "work", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
		d.cloud.Queues.Disorder(d.url, simaws.Disorder{Seed: seed, Duplicate: 0.5, Reorder: true})

		for i := range 20 {
			d.send(fmt.Sprintf("%02d", i))
		}

		ids = map[string]int{}

		for range 20 {
			for _, m := range d.receive(10) {
				wantCode(t, d.remove(m), "")

				bodies = append(bodies, *m.Body)
				ids[*m.MessageId]++
			}

			d.add(time.Second)
		}

		return bodies, ids
	}

	bodies, ids := run(1)
	again, _ := run(1)

	if len(ids) != 20 || len(bodies) <= 20 || len(bodies) > 40 {
		t.Fatalf("%d deliveries of %d messages", len(bodies), len(ids))
	}

	if slices.IsSorted(bodies[:10]) {
		t.Errorf("messages are in order: %v", bodies)
	}

	if !slices.Equal(bodies, again) {
		t.Errorf("the second run differs:\n%v\n%v", bodies, again)
	}
}

func TestGetQueueAttributes_messagesInEachState_areCounted(t *testing.T) {
	t.Parallel()

	d := newDesk(t, "work", simaws.QueueConfig{})
	for _, body := range []string{"a", "b", "c"} {
		d.send(body)
	}

	d.sendDelayed("later", 60)
	d.wantOf(1, "a")

	out, err := d.cloud.Queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &d.url, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	})
	wantCode(t, err, "")

	want := map[string]string{
		"ApproximateNumberOfMessages": "2", "ApproximateNumberOfMessagesNotVisible": "1",
		"ApproximateNumberOfMessagesDelayed": "1", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:work",
		"VisibilityTimeout": "30",
	}
	for name, value := range want {
		if got := out.Attributes[name]; got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}
