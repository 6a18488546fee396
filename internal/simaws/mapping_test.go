package simaws_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

var errFunction = errors.New("function failed")

// function records the joined bodies of each batch, and returns the result of response.
type function struct {
	mu       sync.Mutex
	batches  []string
	response func(ms []sqstypes.Message) ([]string, error)
}

func (f *function) invoke(_ context.Context, ms []sqstypes.Message) ([]string, error) {
	bodies := make([]string, len(ms))
	for i, m := range ms {
		bodies[i] = *m.Body
	}

	f.mu.Lock()
	f.batches = append(f.batches, strings.Join(bodies, " "))
	f.mu.Unlock()

	if f.response == nil {
		return nil, nil
	}

	return f.response(ms)
}

func (f *function) want(tb testing.TB, batches ...string) {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()

	if !slices.Equal(f.batches, batches) {
		tb.Fatalf("batches %q, want %q", f.batches, batches)
	}
}

// drive runs all work that is due.
func drive(c *simaws.Cloud) {
	for {
		for c.Step() {
			synctest.Wait()
		}

		synctest.Wait()

		select {
		case <-c.Changed():
		default:
			return
		}
	}
}

// bubble returns a desk in virtual time.
func bubble(t *testing.T, name string, config simaws.QueueConfig) *desk {
	t.Helper()

	c := simaws.New()

	return &desk{tb: t, cloud: c, url: c.Queues.Create(name, config)}
}

func TestMapping_functionFailsForMessages_redeliversOnlyThese(t *testing.T) {
	t.Parallel()

	idsOf := func(bodies ...string) func(ms []sqstypes.Message) ([]string, error) {
		return func(ms []sqstypes.Message) (ids []string, err error) {
			for _, m := range ms {
				if slices.Contains(bodies, *m.Body) {
					ids = append(ids, *m.MessageId)
				}
			}

			return ids, nil
		}
	}
	tests := map[string]struct {
		response func(ms []sqstypes.Message) ([]string, error)
		again    []string
	}{
		"all done":   {nil, nil},
		"one failed": {idsOf("b"), []string{"b"}},
		"error":      {func([]sqstypes.Message) ([]string, error) { return nil, errFunction }, []string{"a b c"}},
		"panic":      {func([]sqstypes.Message) ([]string, error) { panic("crash") }, []string{"a b c"}},
		"goexit": {func([]sqstypes.Message) ([]string, error) {
			runtime.Goexit()
			return nil, nil
		}, []string{"a b c"}},
		"unknown id":  {func([]sqstypes.Message) ([]string, error) { return []string{"?"}, nil }, []string{"a b c"}},
		"empty id":    {func([]sqstypes.Message) ([]string, error) { return []string{""}, nil }, []string{"a b c"}},
		"all failed":  {idsOf("a", "b", "c"), []string{"a b c"}},
		"last failed": {idsOf("c"), []string{"c"}},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := bubble(t, "work", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
				f := &function{response: tt.response}
				d.cloud.Map(d.url, simaws.Mapping{Invoke: f.invoke})

				for _, body := range []string{"a", "b", "c"} {
					d.send(body)
				}

				drive(d.cloud)
				f.want(t, "a b c")

				failed := int64(0)
				if len(tt.again) > 0 && tt.again[0] == "a b c" && name != "all failed" {
					failed = 1
				}

				if got := d.cloud.Counts()["Lambda.Errors"]; got != failed {
					t.Errorf("%d errors, want %d", got, failed)
				}

				f.response = nil
				due, ok := d.cloud.NextDue()

				if ok != (tt.again != nil) || (ok && time.Until(due) != 10*time.Second) {
					t.Fatalf("next due at %v, %v", due, ok)
				}

				time.Sleep(10 * time.Second)
				drive(d.cloud)
				f.want(t, append([]string{"a b c"}, tt.again...)...)
			})
		})
	}
}

func TestMapping_fifoBatchIsInFlight_restOfTheGroupWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "inbox.fifo", simaws.QueueConfig{})
		release := make(chan struct{})
		f := &function{response: func([]sqstypes.Message) ([]string, error) {
			<-release

			return nil, nil
		}}
		d.cloud.Map(d.url, simaws.Mapping{BatchSize: 3, Invoke: f.invoke})

		for _, body := range []string{"a1", "a2", "b1", "b2", "b3"} {
			d.sendTo(body[:1], body)
		}

		for d.cloud.Step() {
		}

		synctest.Wait()
		f.want(t, "a1 a2 b1")

		if d.cloud.InFlight() != 1 {
			t.Errorf("%d in flight", d.cloud.InFlight())
		}

		close(release)
		drive(d.cloud)
		f.want(t, "a1 a2 b1", "b2 b3")

		if _, ok := d.cloud.NextDue(); ok || d.cloud.InFlight() != 0 {
			t.Error("work is left")
		}
	})
}

func TestStep_severalMappings_runsInOrderWithinConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "first", simaws.QueueConfig{})
		second := &desk{tb: t, cloud: d.cloud, url: d.cloud.Queues.Create("second", simaws.QueueConfig{})}

		release := make(chan struct{})
		f := &function{response: func([]sqstypes.Message) ([]string, error) {
			<-release

			return nil, nil
		}}

		for _, url := range []string{d.url, second.url} {
			d.cloud.Map(url, simaws.Mapping{BatchSize: 1, Concurrency: 1, Invoke: f.invoke})
		}

		second.send("2")
		d.send("1a")
		d.send("1b")

		started := 0
		for d.cloud.Step() {
			synctest.Wait()

			started++
		}

		f.want(t, "1a", "2")

		if _, ok := d.cloud.NextDue(); ok {
			t.Error("NextDue reports work, but both mappings are busy")
		}

		close(release)
		drive(d.cloud)
		f.want(t, "1a", "2", "1b")
	})
}

func TestStep_messageBecomesDeadLetter_isDeliveredToEarlierMapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := bubble(t, "dead", simaws.QueueConfig{})
		d := &desk{tb: t, cloud: dead.cloud, url: dead.cloud.Queues.Create("work", simaws.QueueConfig{
			VisibilityTimeout: time.Second, DeadLetterQueue: "dead", MaxReceiveCount: 1,
		})}
		buried, f := &function{}, &function{response: func([]sqstypes.Message) ([]string, error) {
			return nil, errFunction
		}}

		dead.cloud.Map(dead.url, simaws.Mapping{Invoke: buried.invoke})
		dead.cloud.Map(d.url, simaws.Mapping{Invoke: f.invoke})
		d.send("poison")
		drive(d.cloud)
		time.Sleep(time.Second)

		if !d.cloud.Step() {
			t.Fatal("the dead letter is not deliverable")
		}

		synctest.Wait()
		f.want(t, "poison")
		buried.want(t, "poison")
	})
}

func TestMapping_functionDeletesAndReleasesMessages_takesEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "inbox.fifo", simaws.QueueConfig{})
		f := &function{}
		f.response = func(ms []sqstypes.Message) ([]string, error) {
			if len(ms) == 1 {
				return nil, nil
			}

			wantCode(t, d.remove(ms[0]), "")
			wantCode(t, d.setVisibility(ms[1], 2), "")

			return []string{*ms[1].MessageId}, nil
		}
		d.cloud.Map(d.url, simaws.Mapping{Invoke: f.invoke})
		d.sendTo("g", "a")
		d.sendTo("g", "b")
		drive(d.cloud)
		time.Sleep(2 * time.Second)
		drive(d.cloud)
		f.want(t, "a b", "b")

		if _, ok := d.cloud.NextDue(); ok {
			t.Error("work is left")
		}
	})
}
