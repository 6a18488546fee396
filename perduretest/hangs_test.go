package perduretest_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// runs starts an orchestration with a body and, if there is one, an activity "work", and waits for its end.
func runs(body func(ctx *perdure.OrchestrationContext) error, work func(context.Context) error) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		r := perdure.NewRegistry()
		perdure.AddOrchestration(r, "hangs", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) { return 0, body(ctx) })
		if work != nil {
			perdure.AddActivity(r, "work", func(ctx context.Context, _ struct{}) (int, error) { return 0, work(ctx) })
		}
		env := perduretest.New(t, r, perduretest.WithPatience(3*time.Second))
		id := start(t, env, "hangs", nil)
		if _, err := env.Client().Wait(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
}

func callWork(ctx *perdure.OrchestrationContext) error {
	_, err := perdure.CallActivityByName[int](ctx, "work", nil).Await(ctx)
	return err
}

var elsewhere = make(chan int) // outside of every bubble

func TestABodyThatHangsFailsItsTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body func(ctx *perdure.OrchestrationContext) error
		says []string
	}{
		"mutex": {func(*perdure.OrchestrationContext) error {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
			return nil
		}, []string{"an orchestration waits for a mutex", "hangs_test.go"}},
		"channel of the package": {func(*perdure.OrchestrationContext) error {
			<-elsewhere
			return nil
		}, []string{"an orchestration waits to receive from a channel", "hangs_test.go"}},
		"channel of its own": {func(*perdure.OrchestrationContext) error {
			<-make(chan int)
			return nil
		}, []string{"the orchestration did not come back", "hangs_test.go"}},
		"loop": {func(*perdure.OrchestrationContext) error {
			for n := 0; ; n++ {
				if n < 0 {
					return nil
				}
			}
		}, []string{"an orchestration computes", "hangs_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, runs(c.body, nil), c.says...)
		})
	}
}

func TestAnActivityThatHangsFailsItsTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		work func(context.Context) error
		says []string
	}{
		"mutex": {func(context.Context) error {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
			return nil
		}, []string{"an activity waits for a mutex", "hangs_test.go", `activity "work" of instance`}},
		"channel": {func(context.Context) error {
			<-make(chan int)
			return nil
		}, []string{`the activity "work", which has been running for 3h`, "hangs_test.go"}},
		"sleep": {func(context.Context) error {
			for {
				time.Sleep(time.Hour)
			}
		}, []string{`the activity "work", which has been running for 3h`, "hangs_test.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, runs(callWork, c.work), c.says...)
		})
	}
}

// What hangs only when its test is over fails that test all the same.
func TestAnActivityThatHangsAtTheEndFailsItsTest(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(){
		"mutex": func() {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
		},
		"channel": func() { <-make(chan int) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				r := perdure.NewRegistry()
				perdure.AddOrchestration(r, "hangs", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) { return 0, callWork(ctx) })
				perdure.AddActivity(r, "work", func(ctx context.Context, _ struct{}) (int, error) {
					<-ctx.Done()
					last()
					return 0, nil
				})
				env := perduretest.New(t, r, perduretest.WithPatience(3*time.Second))
				start(t, env, "hangs", nil)
				env.Advance(time.Minute)
			}, `activity "work" of instance`, "hangs_test.go")
		})
	}
}

// A goroutine that an activity has left behind is found once the test is over.
func TestAGoroutineThatIsLeftFailsItsTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, runs(callWork, func(context.Context) error {
		go func() { <-make(chan int) }()
		return nil
	}), "goroutines are left", "a goroutine waits to receive from a channel", "hangs_test.go")
}

// A bubble within a bubble cannot be.
func TestAnEnvInABubbleFailsTheTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, func(t *testing.T) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { perduretest.New(t, registry()) })
	}, "outside of synctest.Test")
}

// A cancelled activity that goes on is found when it should have ended.
func TestAnActivityThatIgnoresItsContextFailsItsTest(t *testing.T) {
	t.Parallel()
	wantFailure(t, runs(func(ctx *perdure.OrchestrationContext) error {
		ctx, cancel := perdure.WithTimeout(ctx, time.Minute)
		defer cancel()
		_ = callWork(ctx)
		return perdure.Sleep(perdure.WithoutCancel(ctx), time.Hour)
	}, func(context.Context) error {
		time.Sleep(30 * time.Minute)
		return nil
	}), `activity "work" of instance`, "ignores the end of its context", "hangs_test.go")
}

// Every turn replays, so what is not the same every time is found at once.
func TestChanceAndTheOrderOfAMapFailTheTest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]func(ctx *perdure.OrchestrationContext) error{
		"chance": func(ctx *perdure.OrchestrationContext) error {
			_, err := perdure.CallActivityByName[int](ctx, "work", rand.Int64()).Await(ctx)
			return err
		},
		"map": func(ctx *perdure.OrchestrationContext) error {
			var fs []perdure.Awaitable
			for name := range map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 11: true} {
				fs = append(fs, perdure.CallActivityByName[int](ctx, "work", name))
			}
			return perdure.WhenAll(ctx, fs...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				r := perdure.NewRegistry()
				perdure.AddOrchestration(r, "bad", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) { return 0, body(ctx) })
				env := perduretest.New(t, r)
				env.Stub("work").Returns(1)
				start(t, env, "bad", nil)
				env.Advance(time.Hour)
			}, "nondeterminism in instance", `ActivityScheduled "work" with the input`)
		})
	}
}
