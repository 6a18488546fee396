package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// largeText returns a text that is too large for an inline payload. Each mark gives a different text.
func largeText(mark string) string { return mark + strings.Repeat("0123456789abcdef", 20<<10) + mark }

// marksOf returns the marks of texts from largeText, and fails if a text was altered.
func marksOf(t *testing.T, texts ...string) (marks string) {
	t.Helper()
	for _, text := range texts {
		if text != largeText(text[:1]) {
			t.Errorf("a text of %d bytes was altered", len(text))
		}
		marks += text[:1]
	}
	return marks
}

// addBulky adds orchestrations that send and receive large payloads in all possible ways, and return the received
// payloads.
func addBulky(r *perdure.Registry) {
	perdure.AddActivity(r, "echo", func(_ context.Context, s string) (string, error) { return s, nil })
	perdure.AddOrchestration(r, "bulky-child", func(ctx *perdure.OrchestrationContext, s string) ([]string, error) {
		event, err := perdure.WaitForExternalEvent[string](ctx, "note").Await(ctx)
		return []string{s, event}, err
	})
	perdure.AddOrchestration(r, "bulky", func(ctx *perdure.OrchestrationContext, in []string) ([]string, error) {
		if len(in) == 1 {
			perdure.CreateTimer(ctx, time.Second).Await(ctx) // the event arrives during the timer and is carried over
			return perdure.ContinueAsNew[[]string](ctx, append(in, largeText("n")))
		}
		noted := perdure.SideEffect(ctx, func() string { return largeText("s") })
		child := perdure.CallSubOrchestrationByName[[]string](ctx, "bulky-child", largeText("c"),
			perdure.WithInstanceID("child-1"))
		if _, err := perdure.StartOrchestration(ctx, "bulky-child", largeText("d"),
			perdure.WithInstanceID("detached-1")); err != nil {
			return nil, err
		}
		if _, err := perdure.RaiseEvent(ctx, "child-1", "note", largeText("t")).Await(ctx); err != nil {
			return nil, err
		}
		carried, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
		if err != nil {
			return nil, err
		}
		a, err := perdure.CallActivityByName[string](ctx, "echo", largeText("a")).Await(ctx)
		if err != nil {
			return nil, err
		}
		i, err := perdure.CallActivityByName[string](ctx, "echo", largeText("i"), perdure.Inline()).Await(ctx)
		if err != nil {
			return nil, err
		}
		c, err := child.Await(ctx)
		return append(append(in, noted, carried, a, i), c...), err
	})
}

// bulkyMarks are the marks of the result of bulky with the input "b" and the event "e".
const bulkyMarks = "bnseaict"

// runBulky runs an instance of bulky to its end, and checks the result.
func runBulky(ctx context.Context, h *hub, c *client.Client) {
	h.t.Helper()
	if _, err := c.Start(ctx, "bulky", []string{largeText("b")}, client.WithInstanceID("i-1")); err != nil {
		h.t.Fatal(err)
	}
	if err := c.RaiseEvent(ctx, "i-1", "go", largeText("e")); err != nil {
		h.t.Fatal(err)
	}
	h.serveFor(3 * time.Hour)
	h.wantBulky(ctx, c)
}

func (h *hub) wantBulky(ctx context.Context, c *client.Client) {
	h.t.Helper()
	s := must(c.Status(ctx, "i-1"))
	if s.Status != client.StatusCompleted {
		h.t.Fatalf("got status %s, failure %+v, want Completed", s.Status, s.Failure)
	}
	if got, err := client.Result[[]string](s); err != nil || marksOf(h.t, got...) != bulkyMarks {
		h.t.Errorf("got marks %s, error %v, want %s", marksOf(h.t, got...), err, bulkyMarks)
	}
}

// endDetached terminates the detached instance that bulky starts.
func (h *hub) endDetached(ctx context.Context, c *client.Client) {
	h.t.Helper()
	if err := c.Terminate(ctx, "detached-1", "enough"); err != nil {
		h.t.Fatal(err)
	}
	h.serveFor(time.Hour)
}

// sweep deletes unreferenced payloads, and returns the number of deleted payloads.
func (h *hub) sweep(ctx context.Context) (deleted int) {
	h.t.Helper()
	for n, err := range admin.New(h.Provider).SweepPayloads(ctx) {
		if err != nil {
			h.t.Fatal(err)
		}
		deleted += n
	}
	return deleted
}

func (h *hub) purgeBy(ctx context.Context, c *client.Client, id string) {
	h.t.Helper()
	if err := c.Purge(ctx, id); err != nil {
		h.t.Fatal(err)
	}
}

// resend resends messages with different deduplication IDs.
func (h *hub) resend(ctx context.Context, sent *sqs.SendMessageBatchInput) {
	h.t.Helper()
	again := *sent
	again.Entries = slices.Clone(sent.Entries)
	for i := range again.Entries {
		id := fmt.Sprintf("%.100s-again", *again.Entries[i].MessageDeduplicationId)
		again.Entries[i].MessageDeduplicationId = &id
	}
	if _, err := h.Cloud.Queues.SendMessageBatch(ctx, &again); err != nil {
		h.t.Fatal(err)
	}
}

// keys returns the keys of the hub's payloads of executions ("x/") or messages ("m/").
func (h *hub) keys(of string) []string { return h.Cloud.Bucket.Keys(simhub.PayloadBucket, "test/"+of) }

// TestR28_largePayloads_areStoredInTheBucket checks that payloads are transferred in all ways and that no message or
// item contains a large payload. A purge leaves only the copies of messages.
func TestR28_largePayloads_areStoredInTheBucket(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]simhub.Options{
		"cold": {CacheBytes: -1}, "warm": {}, "encoded": {
			CacheBytes: -1, Codecs: []perdure.Codec{&turning{id: "turned"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Registry, o.Bucket = registry(), true
			addBulky(o.Registry)
			inBubble(t, o, func(ctx context.Context, h *hub) {
				opts := []client.Option{}
				if len(o.Codecs) > 0 {
					opts = append(opts, client.WithCodec(o.Codecs[0]))
				}
				c := client.New(h.Provider, opts...)
				runBulky(ctx, h, c)
				for _, call := range h.made() {
					if in := must(json.Marshal(call.Input)); call.Service != "S3" && len(in) > 64<<10 {
						t.Errorf("%s.%s has an input of %d bytes: %.200s",
							call.Service, call.Operation, len(in), in)
					}
				}
				for _, key := range h.keys("x/") {
					if provider.ExecutionOfPayload(strings.TrimPrefix(key, "test/")) == "" {
						t.Errorf("key %s belongs to no execution", key)
					}
				}

				h.endDetached(ctx, c)
				for _, id := range []string{"i-1", "child-1", "detached-1"} {
					h.purgeBy(ctx, c, id)
				}
				h.serveFor(time.Hour)
				if left := h.keys("x/"); len(left) > 0 {
					t.Errorf("a purge leaves %d payloads: %v", len(left), left)
				}
				if mail := h.keys("m/"); len(mail) == 0 {
					t.Error("got no payload copies of messages, want some")
				}
			})
		})
	}
}

// TestR28_noBucket_oversizedPayloadFailsAtTheCall checks that without a bucket, a payload above the inline limit fails
// at the call that has the payload.
func TestR28_noBucket_oversizedPayloadFailsAtTheCall(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	perdure.AddOrchestration(r, "fails", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		return perdure.CallActivityByName[string](ctx, "echo", largeText("a")).Await(ctx)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		want := func(err error, limit int) {
			t.Helper()
			if e, ok := errors.AsType[*perdure.PayloadTooLargeError](err); !ok || e.Limit != limit {
				t.Errorf("got error %v, want PayloadTooLargeError with limit %d", err, limit)
			}
		}
		_, err := c.Start(ctx, "fails", largeText("b"), client.WithInstanceID("i-1"))
		want(err, perdure.MaxPayloadBytes)
		_ = must(c.Start(ctx, "fails", 0, client.WithInstanceID("i-1")))
		want(c.RaiseEvent(ctx, "i-1", "go", largeText("e")), perdure.MaxPayloadBytes)
		h.serveFor(time.Minute)
		_, err = client.Result[string](must(c.Status(ctx, "i-1")))
		want(err, perdure.MaxPayloadBytes)
	})
}

// TestR28_bucketAddedLater_replayUsesRecordedLimit checks that a new bucket does not change results that the code
// received before.
func TestR28_bucketAddedLater_replayUsesRecordedLimit(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	perdure.AddOrchestration(r, "falls back", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		try := func() string {
			v, err := perdure.CallActivityByName[string](ctx, "echo", largeText("a")).Await(ctx)
			if _, tooLarge := errors.AsType[*perdure.PayloadTooLargeError](err); tooLarge {
				return "too large"
			}
			return fmt.Sprint(len(v), err)
		}
		before := try()
		_, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
		return before + ", then " + try(), err
	})
	inBubble(t, simhub.Options{Registry: r, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		_ = must(client.New(h.Provider).Start(ctx, "falls back", 0, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		later := h.with(simhub.Options{Registry: r, CacheBytes: -1, Bucket: true})
		c := client.New(later.Provider)
		if err := c.RaiseEvent(ctx, "i-1", "go", "!"); err != nil {
			t.Fatal(err)
		}
		later.serveFor(time.Hour)
		s := must(c.Status(ctx, "i-1"))
		want := fmt.Sprintf("too large, then %d <nil>", len(largeText("a")))
		if got, err := client.Result[string](s); err != nil || got != want {
			t.Errorf("got %q, error %v, want %q; status %s, failure %+v", got, err, want, s.Status, s.Failure)
		}
	})
}

// with closes this hub and returns a hub on the same resources with other options.
func (h *hub) with(o simhub.Options) *hub {
	h.t.Helper()
	h.Close()
	o.On = h.Hub
	next := &hub{t: h.t, Hub: must(simhub.New(o))}
	h.t.Cleanup(next.Close)
	return next
}

// reads returns the number of S3 reads.
func (h *hub) reads() (n int) {
	for _, call := range h.made() {
		if call.Service == "S3" && call.Operation == "GetObject" {
			n++
		}
	}
	return n
}

// TestR28_largeResults_areFetchedOnlyIfAwaited checks that a process fetches each awaited result once, and no other
// result.
func TestR28_largeResults_areFetchedOnlyIfAwaited(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	perdure.AddOrchestration(r, "picky", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[string]
		for i := range n {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "make", fmt.Sprint(i)))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
		v, _ := fs[2].Await(ctx)
		for range 3 {
			if _, err := perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx); err != nil {
				return 0, err
			}
		}
		return len(v), nil
	})
	perdure.AddActivity(r, "make", func(_ context.Context, s string) (string, error) { return largeText(s), nil })
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "picky", 5, client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		for range 3 { // each turn replays from the beginning
			if err := c.RaiseEvent(ctx, "i-1", "go", "!"); err != nil {
				t.Fatal(err)
			}
			h.serveFor(time.Minute)
		}
		if got, err := client.Result[int](must(c.Status(ctx, "i-1"))); err != nil || got != len(largeText("2")) {
			t.Errorf("got %d, error %v, want the length of one text", got, err)
		}
		if n := h.reads(); n != 1 {
			t.Errorf("got %d S3 reads, want 1", n)
		}
	})
}

// TestR28_objectIsMissingOrAltered_diagnosisNamesIt checks an object that is missing or altered. The instance is
// blocked, and its diagnosis names the key, the instance and the execution. After the object is restored, the instance
// continues.
func TestR28_objectIsMissingOrAltered_diagnosisNamesIt(t *testing.T) {
	t.Parallel()
	for name, corrupt := range map[string]func(ctx context.Context, h *hub, key string, data []byte) error{
		"missing": func(ctx context.Context, h *hub, key string, _ []byte) error {
			return h.Cloud.Bucket.DeleteObjects(ctx, simhub.PayloadBucket, []string{key})
		},
		"altered": func(ctx context.Context, h *hub, key string, data []byte) error {
			altered := slices.Clone(data)
			altered[len(altered)/2] ^= 1
			return h.Cloud.Bucket.PutObject(ctx, simhub.PayloadBucket, key, altered)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spoiledObject(t, corrupt)
		})
	}
}

func spoiledObject(t *testing.T, corrupt func(ctx context.Context, h *hub, key string, data []byte) error) {
	t.Helper()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		key := h.keys("x/")[0]
		data := must(h.Cloud.Bucket.GetObject(ctx, simhub.PayloadBucket, key, 1<<30))
		if err := corrupt(ctx, h, key, data); err != nil {
			t.Fatal(err)
		}
		// without the cached payload
		later := h.with(simhub.Options{Registry: r, Bucket: true, CacheBytes: -1, BuildID: "later"})
		c = client.New(later.Provider)
		if err := c.RaiseEvent(ctx, "i-1", "note", largeText("t")); err != nil {
			t.Fatal(err)
		}
		later.serveFor(time.Hour)
		s := must(c.Status(ctx, "i-1"))
		if s.Status != client.StatusBlocked || s.Failure.Type != history.TypePayloadUnreadable {
			t.Fatalf("got status %s, failure %+v, want Blocked with an unreadable payload", s.Status, s.Failure)
		}
		for _, part := range []string{
			strings.TrimPrefix(key, "test/"), `instance "i-1"`, s.ExecutionID,
			"orchestration input",
		} {
			if !strings.Contains(s.Failure.Message, part) {
				t.Errorf("diagnosis does not name %s: %s", part, s.Failure.Message)
			}
		}

		if err := h.Cloud.Bucket.PutObject(ctx, simhub.PayloadBucket, key, data); err != nil {
			t.Fatal(err)
		}
		if err := c.RaiseEvent(ctx, "i-1", "look again", 0); err != nil {
			t.Fatal(err)
		}
		later.serveFor(time.Hour)
		if got, err := client.Result[[]string](must(c.Status(ctx, "i-1"))); err != nil || marksOf(t, got...) != "ct" {
			t.Errorf("got %v, error %v, want ct", marksOf(t, got...), err)
		}
	})
}

// TestR28_buildWithoutBucket_blocksAndLosesNothing checks that a build without the bucket blocks instances that need
// it, and leaves the payloads of messages in the bucket. A build with the bucket continues.
func TestR28_buildWithoutBucket_blocksAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		if err := c.RaiseEvent(ctx, "i-1", "note", largeText("t")); err != nil {
			t.Fatal(err)
		}
		where := h.Provider.Config()
		without := h.with(simhub.Options{Registry: r, CacheBytes: -1, BuildID: "without"})
		without.serveFor(time.Hour)
		s := must(client.New(without.Provider).Status(ctx, "i-1"))
		if s.Status != client.StatusBlocked || !strings.Contains(s.Failure.Message,
			"this program has no payload store") {
			t.Fatalf("got status %s, failure %+v, want Blocked without a payload store", s.Status, s.Failure)
		}
		with := without.with(simhub.Options{Registry: r, CacheBytes: -1, BuildID: "with", Bucket: true})
		if with.Provider.Config().PayloadBucket != where.PayloadBucket {
			t.Fatal("got another bucket after the redeployment")
		}
		for range 4 {
			_ = must(with.Renewer.Sweep(ctx))
			with.serveFor(10 * time.Minute)
		}
		if got, err := client.Result[[]string](must(client.New(with.Provider).Status(ctx, "i-1"))); err != nil ||
			marksOf(t, got...) != "ct" {
			t.Errorf("got %v, error %v, want ct", marksOf(t, got...), err)
		}
		for _, e := range with.events(with.first(ctx)) {
			e.EachPayload(func(p history.EventPayload) {
				if key := p.Payload.StorageKey(); provider.IsMessagePayloadKey(key) {
					t.Errorf("event %d refers to %s, the expiring copy of a message", e.ID, key)
				}
			})
		}
	})
}

// slowDown returns the error of S3 for too many requests.
func slowDown() error {
	return &smithy.GenericAPIError{
		Code: "SlowDown", Message: "Please reduce your request rate.", Fault: smithy.FaultServer,
	}
}

// TestR28_bucketThrottlesForHours_losesNothing checks that throttling by S3 does not block or fail instances, and that
// all instances complete afterwards.
func TestR28_bucketThrottlesForHours_losesNothing(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	var throttled atomic.Bool
	o := simhub.Options{
		Registry: r, Bucket: true, CacheBytes: -1,
		Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Service == "S3" && throttled.Load() {
				return slowDown()
			}
			return next()
		},
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky", []string{largeText("b")}, client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "go", largeText("e")); err != nil {
			t.Fatal(err)
		}
		for range 6 {
			throttled.Store(true)
			h.serveFor(time.Hour)
			if in := must(h.Provider.ReadInstance(ctx, "i-1")); in.Status == provider.StatusBlocked ||
				in.Status == provider.StatusFailed {
				t.Fatalf("got status %s while S3 throttles", in.Status)
			}
			throttled.Store(false)
			h.serveFor(3 * time.Second)
		}
		h.serveFor(24 * time.Hour)
		h.wantBulky(ctx, c)
		h.endDetached(ctx, c)
		h.checkIdle()
	})
}

// TestR28_commitIsLostOrRepeated_losesNoPayload checks that an object is written before its reference. If the commit is
// lost or repeated, no payload is missing, and a purge and a sweep delete the remaining payloads.
func TestR28_commitIsLostOrRepeated_losesNoPayload(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(next func() error) error{
		"request": func(func() error) error { return errors.New("request lost") },
		"response": func(next func() error) error {
			return errors.Join(next(), errors.New("response lost"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry()
			addBulky(r)
			var faulty atomic.Bool
			var mu sync.Mutex
			chance := rand.New(rand.NewPCG(1, 2))
			o := simhub.Options{
				Registry: r, Bucket: true, CacheBytes: -1, Codecs: []perdure.Codec{&turning{id: "turned"}},
				Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
					mu.Lock()
					fails := faulty.Load() && c.Service != "Lambda" && chance.IntN(4) == 0
					mu.Unlock()
					if fails {
						return lost(next)
					}
					return next()
				},
			}
			inBubble(t, o, func(ctx context.Context, h *hub) {
				c := client.New(h.Provider, client.WithCodec(&turning{id: "turned"}))
				_ = must(c.Start(ctx, "bulky", []string{largeText("b")}, client.WithInstanceID("i-1")))
				if err := c.RaiseEvent(ctx, "i-1", "go", largeText("e")); err != nil {
					t.Fatal(err)
				}
				faulty.Store(true)
				h.serveFor(24 * time.Hour)
				faulty.Store(false)
				h.serveFor(24 * time.Hour)
				h.wantBulky(ctx, c)
				h.endDetached(ctx, c)
				for _, id := range []string{"i-1", "child-1", "detached-1"} {
					h.purgeBy(ctx, c, id)
				}
				h.serveFor(72 * time.Hour)
				left := len(h.keys("x/"))
				swept := h.sweep(ctx)
				if now := len(h.keys("x/")); now != 0 || swept != left {
					t.Errorf("got %d payloads after the purge, %d swept, %d after the sweep", left, swept, now)
				}
			})
		})
	}
}

// TestR28_everyMessageTwice_findsItsPayload checks that the payloads of repeated messages are found, even if the first
// copy was processed.
func TestR28_everyMessageTwice_findsItsPayload(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		for _, url := range h.Provider.Config().WorkQueues {
			h.Cloud.Queues.Disorder(url, simaws.Disorder{Seed: 1, Duplicate: 1, Reorder: true})
		}
		c := client.New(h.Provider)
		runBulky(ctx, h, c)
		for _, call := range h.made() { // resend every inbox message, like a sender that received no response
			sent, ok := call.Input.(*sqs.SendMessageBatchInput)
			if ok && *sent.QueueUrl == h.Provider.Config().InboxURL {
				h.resend(ctx, sent)
			}
		}
		h.serveFor(3 * time.Hour)
		h.wantBulky(ctx, c)
		h.endDetached(ctx, c)
		h.checkIdle()
	})
}

// TestR28_senderIsPurged_itsMessagesStayReadable checks that the sender of a large payload may be purged before the
// message is received.
func TestR28_senderIsPurged_itsMessagesStayReadable(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	perdure.AddOrchestration(r, "purged-sender", func(ctx *perdure.OrchestrationContext, to string) (int, error) {
		perdure.RaiseEvent(ctx, to, "note", largeText("t"))
		_, err := perdure.StartOrchestration(ctx, "bulky-child", largeText("d"), perdure.WithInstanceID("detached-1"))
		return 0, err
	})
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("child-1")))
		h.serveFor(time.Minute)
		_ = must(c.Start(ctx, "purged-sender", "child-1", client.WithInstanceID("i-1")))
		h.turn(0) // the messages are sent but not received
		if s := must(c.Status(ctx, "i-1")); s.Status != client.StatusCompleted {
			t.Fatalf("got status %s, failure %+v, want Completed", s.Status, s.Failure)
		}
		h.purgeBy(ctx, c, "i-1")
		h.serveFor(time.Hour)
		if got, err := client.Result[[]string](must(c.Status(ctx, "child-1"))); err != nil ||
			marksOf(t, got...) != "ct" {
			t.Errorf("child-1: got %v, error %v, want ct", marksOf(t, got...), err)
		}
		if err := c.RaiseEvent(ctx, "detached-1", "note", largeText("e")); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		h.Cloud.Bucket.Expire(simhub.PayloadBucket, "test/m/", time.Minute)
		if got, err := client.Result[[]string](must(c.Status(ctx, "detached-1"))); err != nil ||
			marksOf(t, got...) != "de" {
			t.Errorf("detached-1: got %v, error %v, want de", marksOf(t, got...), err)
		}
	})
}

// TestR28_payloadStoredAfterPurge_isSweptLater checks that a turn that stores a payload after the purge leaves an
// orphan. A sweep deletes the orphan and nothing else.
func TestR28_payloadStoredAfterPurge_isSweptLater(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("lives")))
		h.serveFor(time.Minute)
		in := must(h.Provider.ReadInstance(ctx, "i-1"))
		if err := c.Terminate(ctx, "i-1", "enough"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		h.purgeBy(ctx, c, "i-1")
		late := provider.PayloadKey(in.ExecutionID, "late")
		// a process that did not observe the purge
		if err := h.Provider.Payloads().PutPayload(ctx, late, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		running := len(h.keys("x/")) - 1
		for _, sweep := range []struct{ after, left int }{{0, running + 1}, {49, running}, {0, running}} {
			h.serveFor(time.Duration(sweep.after) * time.Hour)
			h.sweep(ctx)
			if keys := h.keys("x/"); len(keys) != sweep.left ||
				slices.Contains(keys, "test/"+late) != (sweep.left > running) {
				t.Errorf("after %d hours: got payloads %v", sweep.after, keys)
			}
		}
	})
}

// TestR28_restart_ownsACopyOfItsInput checks that a restarted instance has a copy of the input that outlives the first
// instance.
func TestR28_restart_ownsACopyOfItsInput(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true, CacheBytes: -1}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		if err := c.RaiseEvent(ctx, "i-1", "note", largeText("t")); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		id := must(c.Restart(ctx, "i-1"))
		h.purgeBy(ctx, c, "i-1")
		if err := c.RaiseEvent(ctx, id, "note", largeText("u")); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Hour)
		if got, err := client.Result[[]string](must(c.Status(ctx, id))); err != nil || marksOf(t, got...) != "cu" {
			t.Errorf("got %v, error %v, want cu", marksOf(t, got...), err)
		}
	})
}

// TestR28_repeatedStart_leavesNoPayload checks that the payload of a repeated start is deleted if the instance already
// exists.
func TestR28_repeatedStart_leavesNoPayload(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		for range 2 {
			_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1"),
				client.WithIdempotencyKey("k")))
			time.Sleep(time.Second)
		}
		if _, err := c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")); !errors.Is(err,
			client.ErrAlreadyExists) {
			t.Errorf("got error %v, want ErrAlreadyExists", err)
		}
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1"),
			client.IfExists(client.UseExisting)))
		if keys := h.keys("x/"); len(keys) != 1 {
			t.Errorf("got payloads %v, want 1", keys)
		}
	})
}

// TestR28_startReplacesInstance_keepsItsInput checks a start that replaces an instance. Between its two tries, the old
// instance is purged with its payloads, but the start has already stored the new input.
func TestR28_startReplacesInstance_keepsItsInput(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	inBubble(t, simhub.Options{Registry: r, Bucket: true}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		was := must(c.Status(ctx, "i-1")) // waits for an event
		started := make(chan struct{})
		go func() {
			defer close(started)
			_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1"),
				client.IfExists(client.Replace)))
		}()
		h.serveFor(time.Hour)
		<-started
		s := must(c.Status(ctx, "i-1"))
		keys := h.keys("x/")
		if s.ExecutionID == was.ExecutionID || s.Status != client.StatusRunning || len(keys) != 1 ||
			!strings.Contains(keys[0], s.ExecutionID) {
			t.Errorf("execution was %s; got status %s, execution %s, payloads %v",
				was.ExecutionID, s.Status, s.ExecutionID, keys)
		}
	})
}
