package perduretest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

func TestPending_allKindsOfItems_haveExactTimes(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "count", func(ctx context.Context, _ struct{}) (int, error) {
		perdure.Heartbeat(ctx, 1)
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return perdure.WhenAny(ctx,
			perdure.CallActivityByName[int](ctx, "count", nil), perdure.CallActivityByName[int](ctx, "missing", nil),
			perdure.CreateTimer(ctx, 2*time.Hour, perdure.WithTimerName("patience")),
			perdure.WaitForExternalEvent[int](ctx, "go"),
			perdure.CallSubOrchestrationByName[int](ctx, "waits-too", nil, perdure.WithInstanceID("child")))
	})
	perdure.AddOrchestration(r, "waits-too", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return 1, perdure.Sleep(ctx, 3*time.Hour)
	})
	env := perduretest.New(t, r)
	id := start(t, env, "waits", nil)
	began := env.Now()
	env.Advance(5 * time.Minute)
	p, err := env.Client().Pending(t.Context(), id, "", 0)
	if err != nil || p.Total != 5 || p.ReadAt.Sub(began) != 5*time.Minute {
		t.Fatalf("got %+v, error %v", p, err)
	}
	var got []string
	for _, x := range p.Items {
		line := fmt.Sprintf("%s %s%s", x.Kind, x.Name, x.InstanceID)
		if !x.DueAt.IsZero() {
			line += fmt.Sprint(" in ", x.DueAt.Sub(p.ReadAt))
		}
		if !x.LastHeartbeatAt.IsZero() {
			line += fmt.Sprint(" beat ", p.ReadAt.Sub(x.LastHeartbeatAt), " ago")
		}
		if !x.UnregisteredAt.IsZero() {
			line += " unknown to " + x.UnregisteredBuildID
		}
		got = append(got, line)
	}
	const want = "activity count beat 5m0s ago, activity missing unknown to test, timer patience in 1h55m0s, " +
		"external_event go, sub_orchestration waits-toochild"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
