package simhub_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

func inc(_ context.Context, n int) (int, error) { return n + 1, nil }

// chain calls inc n times in sequence.
func chain(ctx *perdure.OrchestrationContext, n int) (int, error) {
	v := 0
	for range n {
		var err error
		if v, err = perdure.CallActivity(ctx, inc, v).Await(ctx); err != nil {
			return 0, err
		}
	}
	return v, nil
}

// The functions, mapped to their queues, run an orchestration to its end.
func TestHub_functionsAreServed_instanceCompletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := perdure.NewRegistry()
		perdure.AddActivity(r, "inc", inc)
		perdure.AddOrchestration(r, "chain", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
			if err := perdure.Sleep(ctx, time.Minute); err != nil {
				return 0, err
			}
			return chain(ctx, n)
		})
		h, err := simhub.New(simhub.Options{Registry: r})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		ctx, stop := context.WithCancel(t.Context())
		go h.Cloud.Serve(ctx)
		in, err := h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: "c", Name: "chain", Input: history.Payload("3"), StartID: "s",
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		end, err := h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
		if err != nil || string(end.Output) != "3" {
			t.Fatal(end, err)
		}
		stop()
		synctest.Wait()
	})
}
