package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// concurrentCalls counts concurrent S3 calls of one operation. Each call takes 30 ms.
type concurrentCalls struct {
	operation string

	mu         sync.Mutex
	calls      int
	now, atMax int
}

func (s *concurrentCalls) intercept(_ context.Context, c simaws.Call, next func() error) error {
	if c.Service != "S3" || c.Operation != s.operation {
		return next()
	}
	s.count(1)
	defer s.count(-1)
	time.Sleep(30 * time.Millisecond) // virtual time
	return next()
}

func (s *concurrentCalls) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.calls += max(n, 0)
	s.atMax = max(s.atMax, s.now)
}

// many is the number of large payloads in a turn.
const many = 60

// wantConcurrent runs an orchestration, and checks the number of S3 calls and that they are concurrent and bounded.
func wantConcurrent(t *testing.T, r *perdure.Registry, orchestration string, s *concurrentCalls, calls int) {
	t.Helper()
	inBubble(t, simhub.Options{
		Registry: r, Bucket: true, CacheBytes: -1, Intercept: s.intercept,
	}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, orchestration, 0, client.WithInstanceID("i-1")))
		h.serveFor(time.Hour)
		if n, err := client.Result[int](must(c.Status(ctx, "i-1"))); err != nil || n != many*len(largeText("x")) {
			t.Errorf("got %d bytes, error %v", n, err)
		}
		if s.calls != calls || s.atMax < 8 || s.atMax > 16 {
			t.Errorf("got %d calls of %s, at most %d concurrent; want %d, 8 to 16 concurrent",
				s.calls, s.operation, s.atMax, calls)
		}
	})
}

// TestR28_manyLargeResults_areFetchedConcurrently checks that code that awaits results in sequence waits for a few
// batches of S3 calls instead of each call.
func TestR28_manyLargeResults_areFetchedConcurrently(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "make", func(_ context.Context, mark string) (string, error) { return largeText(mark), nil })
	perdure.AddOrchestration(r, "takes many", func(ctx *perdure.OrchestrationContext, _ int) (bytes int, err error) {
		var fs []*perdure.Future[string]
		for i := range many {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "make", string(rune('0'+i))))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
		for _, f := range fs {
			text, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			bytes += len(text)
		}
		return bytes, nil
	})
	wantConcurrent(t, r, "takes many", &concurrentCalls{operation: "GetObject"}, many)
}

// TestR28_manyLargeInputs_areStoredConcurrently checks that a turn with many large inputs waits for a few batches of S3
// calls instead of each call.
func TestR28_manyLargeInputs_areStoredConcurrently(t *testing.T) {
	t.Parallel()
	r := registry()
	perdure.AddActivity(r, "measure", func(_ context.Context, s string) (int, error) { return len(s), nil })
	perdure.AddOrchestration(r, "gives many", func(ctx *perdure.OrchestrationContext, _ int) (bytes int, err error) {
		var fs []*perdure.Future[int]
		for i := range many {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "measure", largeText(string(rune('0'+i)))))
		}
		for _, f := range fs {
			n, err := f.Await(ctx)
			if err != nil {
				return 0, err
			}
			bytes += n
		}
		return bytes, nil
	})
	wantConcurrent(t, r, "gives many", &concurrentCalls{operation: "PutObject"}, many)
}

// panickingCodec is a codec that panics for some documents.
type panickingCodec struct{ turning }

func (b *panickingCodec) Decode(ctx context.Context, p perdure.PayloadInfo, data []byte) ([]byte, error) {
	doc, err := b.turning.Decode(ctx, p, data)
	if strings.Contains(string(doc), "burst") {
		panic("index out of range")
	}
	return doc, err
}

// TestR28_codecPanics_blocksOnlyItsInstance checks that other instances in the batch continue, and that the blocked
// instance continues in a fixed build.
func TestR28_codecPanics_blocksOnlyItsInstance(t *testing.T) {
	t.Parallel()
	r := registry()
	addSecretive(r)
	codec := &panickingCodec{turning{id: "turned"}}
	inBubble(t, simhub.Options{Registry: r, Codecs: []perdure.Codec{codec}}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider, client.WithCodec(&codec.turning))
		for _, id := range []string{"bursts", "continues"} {
			_ = must(c.Start(ctx, "child", id, client.WithInstanceID(id)))
			if err := c.RaiseEvent(ctx, id, "note", "!"); err != nil {
				t.Fatal(err)
			}
		}
		h.serveFor(time.Hour)
		s := must(c.Status(ctx, "bursts"))
		if s.Status != client.StatusBlocked || s.Failure.Type != history.TypePayloadUnreadable ||
			!strings.Contains(s.Failure.Message, "codec panicked") {
			t.Errorf("got status %s, failure %+v, want Blocked by a codec panic", s.Status, s.Failure)
		}
		if got, err := client.Result[string](must(c.Status(ctx, "continues"))); err != nil || got != "continues!" {
			t.Errorf("got %q, error %v", got, err)
		}

		h.deployWith(r, "fixed", []perdure.Codec{&codec.turning})
		for range 4 {
			_ = must(h.Renewer.Sweep(ctx))
			h.serveFor(10 * time.Minute)
		}
		if got, err := client.Result[string](must(c.Status(ctx, "bursts"))); err != nil || got != "bursts!" {
			t.Errorf("got %q, error %v", got, err)
		}
	})
}

// TestR28_purgeFailsMidway_isContinued checks that an instance stays Deleting while S3 deletes nothing, and that the
// instance and its payloads are deleted afterwards.
func TestR28_purgeFailsMidway_isContinued(t *testing.T) {
	t.Parallel()
	r := registry()
	addBulky(r)
	var refuses atomic.Bool
	o := simhub.Options{
		Registry: r, Bucket: true,
		Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Service == "S3" && c.Operation == "DeleteObjects" && refuses.Load() {
				return slowDown()
			}
			return next()
		},
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "bulky-child", largeText("c"), client.WithInstanceID("i-1")))
		h.serveFor(time.Minute)
		if err := c.Terminate(ctx, "i-1", "enough"); err != nil {
			t.Fatal(err)
		}
		h.serveFor(time.Minute)
		refuses.Store(true)
		if err := c.Purge(ctx, "i-1"); err == nil {
			t.Error("purge succeeded although its payloads remain")
		}
		if s, err := c.Status(ctx, "i-1"); s.Status != client.StatusDeleting || len(h.keys("x/")) == 0 {
			t.Errorf("got status %s, error %v, payloads %v", s.Status, err, h.keys("x/"))
		}
		refuses.Store(false)
		for range 4 {
			_ = must(h.Renewer.Sweep(ctx))
			h.serveFor(10 * time.Minute)
		}
		if _, err := c.Status(ctx, "i-1"); !errors.Is(err, client.ErrNotFound) || len(h.keys("x/")) > 0 {
			t.Errorf("got error %v, payloads %v, want ErrNotFound and none", err, h.keys("x/"))
		}
	})
}
