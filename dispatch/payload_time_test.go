package dispatch_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/internal/sleep"
)

// addGathering adds an orchestration that awaits the given number of large results in one turn, and an orchestration
// without results.
func addGathering(r *perdure.Registry, results, size int) {
	perdure.AddActivity(r, "make", func(_ context.Context, mark string) (string, error) {
		return mark + strings.Repeat("x", size), nil
	})
	perdure.AddOrchestration(r, "gathers", func(ctx *perdure.OrchestrationContext, _ int) (bytes int, err error) {
		var fs []*perdure.Future[string]
		for i := range results {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "make", string(rune('A'+i))))
		}
		if err := perdure.WhenAll(ctx, perdure.Awaitables(fs)...); err != nil {
			return 0, err
		}
		for _, f := range fs {
			text, err := f.Await(ctx)
			if err != nil {
				return bytes, err
			}
			bytes += len(text)
		}
		return bytes, nil
	})
	perdure.AddOrchestration(r, "concurrent", func(*perdure.OrchestrationContext, int) (string, error) {
		return "over", nil
	})
}

// slowBucket delays each S3 read by d in virtual time, or until its context ends.
func slowBucket(d time.Duration) simaws.Interceptor {
	return func(ctx context.Context, c simaws.Call, next func() error) error {
		if c.Service == "S3" && c.Operation == "GetObject" && sleep.For(ctx, d) != nil {
			return ctx.Err()
		}
		return next()
	}
}

// turnFailed is in the log record of a turn that is retried.
const turnFailed = "event=" + logevent.TurnFailed

// The turn reads 40 payloads, each for 6 s and at most 16 concurrently, which exceeds the 28 s of an invocation. The
// process caches the payloads, and its next invocation reads the missing ones.
func TestR28_readsExceedAnInvocation_nextInvocationReadsTheRest(t *testing.T) {
	t.Parallel()
	const results, size = 40, 300 << 10
	r := registry()
	addGathering(r, results, size)
	var log strings.Builder
	o := simhub.Options{
		Registry: r, Bucket: true, CacheBytes: -1, InvocationLimit: 30 * time.Second,
		Intercept: slowBucket(6 * time.Second),
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "gathers", 0, client.WithInstanceID("i-1")))
		h.serveFor(10 * time.Minute)
		if n, err := client.Result[int](must(c.Status(ctx, "i-1"))); err != nil || n != results*(size+1) {
			t.Errorf("got %d bytes, error %v", n, err)
		}
		if n := strings.Count(log.String(), turnFailed); n != 1 {
			t.Errorf("got %d failed turns, want 1:\n%s", n, log.String())
		}
	})
}

// TestR28_payloadsExceedCacheAndInvocation_waitForALongerInvocation checks payloads that are too large for the cache
// and for one invocation. Each failed turn logs its progress and the needed setting. Other instances are unaffected.
// The turn succeeds when invocations are longer. No instance is blocked or poison, and no message is lost.
func TestR28_payloadsExceedCacheAndInvocation_waitForALongerInvocation(t *testing.T) {
	t.Parallel()
	const results, size = 6, 9 << 20
	r := registry()
	addGathering(r, results, size)
	var log strings.Builder
	o := simhub.Options{
		Registry: r, Bucket: true, CacheBytes: -1, InvocationLimit: 30 * time.Second,
		Intercept: slowBucket(6 * time.Second),
		Logger:    slog.New(slog.NewTextHandler(&log, nil)),
	}
	inBubble(t, o, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		_ = must(c.Start(ctx, "gathers", 0, client.WithInstanceID("i-1")))
		h.serveFor(5 * time.Minute)
		_ = must(c.Start(ctx, "concurrent", 0, client.WithInstanceID("i-2")))
		h.serveFor(time.Second)
		if s := must(c.Status(ctx, "i-2")); s.Status != client.StatusCompleted {
			t.Errorf("other instance: got status %s, want Completed", s.Status)
		}
		if s := must(c.Status(ctx, "i-1")); s.Status != client.StatusRunning {
			t.Errorf("got status %s, failure %+v, want Running", s.Status, s.Failure)
		}
		failed := 0
		for line := range strings.Lines(log.String()) {
			// this test interrupted the last turn
			if !strings.Contains(line, turnFailed) || !strings.Contains(line, "deadline exceeded") {
				continue
			}
			if failed++; !strings.Contains(line, "the code read 4 large payloads with 37748748 bytes") ||
				!strings.Contains(line, "InboxTimeout") {
				t.Errorf("log lacks the progress of the turn: %s", line)
			}
		}
		if failed < 3 {
			t.Errorf("got %d failed turns, want at least 3:\n%s", failed, log.String())
		}

		longer := must(simhub.New(simhub.Options{
			Registry: r, Bucket: true, CacheBytes: -1, On: h.Hub, InvocationLimit: 5 * time.Minute,
		}))
		longer.ServeFor(ctx, 10*time.Minute)
		if n, err := client.Result[int](must(client.New(longer.Provider).Status(ctx, "i-1"))); err != nil ||
			n != results*(size+1) {
			t.Errorf("longer invocation: got %d bytes, error %v", n, err)
		}
	})
}
