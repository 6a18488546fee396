package perduretest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

const aDay = 24 * time.Hour

// keepers returns a registry whose orchestrations have different retentions.
func keepers() *perdure.Registry {
	r := perdure.NewRegistry()
	echo := func(_ *perdure.OrchestrationContext, s string) (string, error) { return s, nil }
	perdure.AddOrchestration(r, "three-days", echo, perdure.WithRetention(3*aDay))
	perdure.AddOrchestration(r, "for-ever", echo, perdure.WithRetention(perdure.RetainForever))
	perdure.AddOrchestration(r, "no-setting", echo)
	perdure.AddOrchestration(r, "parent", func(ctx *perdure.OrchestrationContext, child string) (string, error) {
		return perdure.CallSubOrchestrationByName[string](ctx, child, "x", perdure.WithInstanceID("child")).Await(ctx)
	}, perdure.WithRetention(aDay))
	perdure.AddOrchestration(r, "daily", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if err := perdure.Sleep(ctx, aDay); err != nil {
			return 0, err
		}
		return perdure.ContinueAsNew[int](ctx, n+1)
	}, perdure.WithRetention(aDay))
	return r
}

// wantPresent checks whether instances exist.
func wantPresent(t *testing.T, env *perduretest.Env, want bool, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if got := statusOf(t, env, id) != ""; got != want {
			t.Errorf("at %v: instance %q exists: got %t", env.Now(), id, got)
		}
	}
}

// Retention counts days of UTC. An instance with a retention of three days that ends on the first at noon is deleted at
// the beginning of the fifth.
func TestRetention_expires_deletesTheInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input string
		opts  []perduretest.Option
	}{
		"small":       {"x", nil},
		"cache":       {"x", []perduretest.Option{perduretest.WithCache()}},
		"in a bucket": {strings.Repeat("x", 1<<20), []perduretest.Option{perduretest.WithLargePayloads()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := perduretest.New(t, keepers(), c.opts...)
			midnight := env.Now().Truncate(aDay).Add(4 * aDay)
			env.Advance(12 * time.Hour)
			id := start(t, env, "three-days", c.input)
			others := []string{start(t, env, "for-ever", "x"), start(t, env, "no-setting", "x")}
			result(t, env, id)

			env.Advance(midnight.Sub(env.Now()) - time.Second)
			wantPresent(t, env, true, id)
			env.Advance(time.Second)
			wantPresent(t, env, false, id)
			env.Advance(365 * aDay)
			wantPresent(t, env, true, others...)
			for n, err := range env.Admin().SweepPayloads(t.Context()) {
				if n > 0 || err != nil {
					t.Errorf("payloads after the retention: got %d, error %v", n, err)
				}
			}
			if _, err := env.Client().Start(t.Context(), "three-days", "again", client.WithInstanceID(id)); err != nil {
				t.Errorf("reuse of the ID: got error %v", err)
			}
		})
	}
}

// Each instance, including a child, has the retention of its own orchestration.
func TestRetention_ofParentExpires_keepsAChildThatHasNotExpired(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, keepers())
	id := start(t, env, "parent", "three-days")
	result(t, env, id)
	env.Advance(2 * aDay)
	wantPresent(t, env, false, id)
	wantPresent(t, env, true, "child")
	env.Advance(2 * aDay)
	wantPresent(t, env, false, "child")
}

// Past executions of a running instance are deleted after 30 days at the earliest.
func TestRetention_eternalOrchestration_erasesPastExecutions(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, keepers())
	id := start(t, env, "daily", 0)
	count := func() int {
		all, err := client.Collect(env.Client().Executions(t.Context(), id))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	env.Advance(20 * aDay)
	if n := count(); n < 20 {
		t.Errorf("got %d executions after 20 days", n)
	}
	env.Advance(180 * aDay)
	if n := count(); n < 30 || n > 35 {
		t.Errorf("got %d executions after 200 days", n)
	}
}

func TestRetention_outageAtItsTime_deletesAfterIt(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, keepers())
	id := start(t, env, "three-days", "x")
	result(t, env, id)
	env.Advance(4*aDay - time.Hour)
	env.Outage(perduretest.DynamoDB, 2*time.Hour)
	env.Advance(2*time.Hour + 2*time.Minute)
	wantPresent(t, env, false, id)
}

// Retention never ends an instance, so Wait does not advance the clock to the next retention.
func TestRetention_waitForAnotherInstance_isIdleAtOnce(t *testing.T) {
	t.Parallel()
	r := keepers()
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	env := perduretest.New(t, r)
	result(t, env, start(t, env, "three-days", "x"))
	before := env.Now()
	_, err := env.Client().Wait(t.Context(), start(t, env, "waits", nil))
	if _, idle := errors.AsType[*perduretest.IdleError](err); !idle || env.Now() != before {
		t.Errorf("at %v: got error %v", env.Now(), err)
	}
}

// Advance skips idle time, for any instances that have run and any time of the next retention.
func TestAdvance_idleForAYear_takesUnderASecond(t *testing.T) {
	t.Parallel()
	r := keepers()
	perdure.AddOrchestration(r, "ten-years", func(*perdure.OrchestrationContext, struct{}) (string, error) {
		return "", nil
	}, perdure.WithRetention(3650*aDay))
	perdure.AddOrchestration(r, "waits", func(ctx *perdure.OrchestrationContext, _ struct{}) (string, error) {
		return perdure.WaitForExternalEvent[string](ctx, "go").Await(ctx)
	})
	env := perduretest.New(t, r)
	start(t, env, "waits", nil)
	result(t, env, start(t, env, "ten-years", nil))
	startBulk(t, env, admin.JobRequest{Operation: admin.OperationPurge, Filter: admin.Filter{Orchestration: "none"}})
	if _, err := env.Client().Start(t.Context(), "for-ever", "x", client.WithDelay(400*aDay)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	env.Advance(365 * aDay)
	if took := time.Since(began); took > time.Second {
		t.Errorf("got duration %v", took)
	} else {
		t.Log("a year took", took)
	}
}
