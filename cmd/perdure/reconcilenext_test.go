package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
)

// onThrottled runs f on a hub that throttles reads of the instances for which throttle returns true.
func onThrottled(t *testing.T, f func(ctx context.Context, h *tool, throttle *func(id string) bool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "hello", func(ctx *perdure.OrchestrationContext, _ int) (int, error) {
			return perdure.WaitForExternalEvent[int](ctx, "e").Await(ctx)
		})
		var throttle func(id string) bool
		hub, err := simhub.New(simhub.Options{
			Registry: r,
			Intercept: func(_ context.Context, c simaws.Call, next func() error) error {
				if in, ok := c.Input.(*dynamodb.GetItemInput); ok && throttle != nil {
					if id, ok := strings.CutPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, "i#"); ok &&
						throttle(id) {
						return simaws.Throttled()
					}
				}
				return next()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h := setup(t)
		h.client, h.admin = client.New(hub.Provider), admin.New(hub.Provider)
		f(t.Context(), h, &throttle)
		hub.Close()
		synctest.Wait()
	})
}

// startMany starts instances in order.
func (h *tool) startMany(ctx context.Context, n int) (ids []string) {
	h.t.Helper()
	for range n {
		id, err := h.client.Start(ctx, "hello", 0)
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, id)
		time.Sleep(time.Millisecond)
	}
	return ids
}

// Without the --lookback and the --hub of the interrupted run, the continued run would omit starts.
func TestReconcile_interrupted_printsCommandWithSameFlags(t *testing.T) {
	t.Parallel()
	onThrottled(t, func(ctx context.Context, h *tool, throttle *func(id string) bool) {
		ids := h.startMany(ctx, 700)
		crashing, crash := context.WithCancel(ctx)
		defer crash()
		*throttle = func(id string) bool {
			if id == ids[100] {
				crash()
			}
			return false
		}
		if code := h.run(crashing, "reconcile", "--yes", "--lookback", "17d", "--hub", "staging", "--concurrency",
			"3"); code != cli.CodeError {
			t.Fatal(code)
		}
		if got := h.err.String(); !strings.Contains(got,
			"continue with perdure reconcile --lookback 17d --concurrency 3 --yes --cursor ") ||
			!strings.HasSuffix(got, " --hub staging\n") {
			t.Errorf("the output after the interrupt is %s", got)
		}

		*throttle = func(id string) bool { return id == ids[3] }
		h.env["PERDURE_HUB"] = "staging"
		if code := h.run(ctx, "reconcile", "--yes", "--lookback", "17d"); code != cli.CodeError {
			t.Fatal(code)
		}
		if got := h.out.String(); !strings.Contains(got,
			"remaining: perdure reconcile --lookback 17d --yes --instance "+ids[3]+"\n") {
			t.Errorf("the output with one remaining instance is %s", got)
		}
		if h.run(ctx, "reconcile", "--yes", "--hub", cli.DefaultHub); !strings.Contains(h.out.String(),
			"remaining: perdure reconcile --yes --instance "+ids[3]+" --hub "+cli.DefaultHub+"\n") {
			t.Errorf("the output with another hub in PERDURE_HUB is %s", h.out.String())
		}
	})
}

// A run with a deferred instance on its first page prints its position and continues from there after an interrupt. A
// failed instance does not require an operator to process all instances again.
func TestReconcile_firstPageHasDeferredInstance_printsCursor(t *testing.T) {
	t.Parallel()
	onThrottled(t, func(ctx context.Context, h *tool, throttle *func(id string) bool) {
		ids := h.startMany(ctx, 1600)
		*throttle = func(id string) bool { return id == ids[1599] }
		h.run(ctx, "reconcile", "--yes")
		got := h.err.String()
		if !strings.Contains(got, "499 instances, 1 waiting for a retry, 0 failed; to continue from here: --cursor ") ||
			!strings.Contains(got,
				"1599 instances, 1 waiting for a retry, 0 failed; to continue from here: --cursor ") {
			t.Errorf("it prints %s", got)
		}
		if !strings.Contains(got, "\nwaiting for DynamoDB, 1 minute so far\n") ||
			!strings.Contains(got, "\nwaiting for DynamoDB, 60 minutes so far\n") {
			t.Errorf("the output during the wait is %s", got)
		}

		crashing, crash := context.WithCancel(ctx)
		defer crash()
		*throttle = func(id string) bool {
			if id == ids[10] {
				crash()
			}
			return id == ids[1599]
		}
		h.run(crashing, "reconcile", "--yes", "--lookback", "17d", "--concurrency", "1")
		_, cursor, found := strings.Cut(h.err.String(),
			"interrupted; continue with perdure reconcile --lookback 17d --concurrency 1 --yes --cursor ")
		*throttle = nil
		if got := h.mustRun("reconcile", "--yes", "--cursor", strings.TrimSpace(cursor)); !found ||
			!strings.Contains(got, "101 instances: 101 not ended") {
			t.Errorf("the output after the interrupt is %s, and after the continuation %s", h.err.String(), got)
		}
	})
}
