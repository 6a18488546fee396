package simaws_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

func TestServe_manyMessages_deliversAllWithinConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const messages, concurrency = 40, 4

		d := bubble(t, "work", simaws.QueueConfig{VisibilityTimeout: time.Minute})

		var (
			mu               sync.Mutex
			running, highest int
			seen             = map[string]int{}
		)

		d.cloud.Map(d.url, simaws.Mapping{
			BatchSize: 1, Concurrency: concurrency,
			Invoke: func(_ context.Context, ms []sqstypes.Message) ([]string, error) {
				mu.Lock()
				running++
				highest = max(highest, running)
				seen[*ms[0].Body]++
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()

				return nil, nil
			},
		})

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})

		go func() {
			d.cloud.Serve(ctx)
			close(done)
		}()

		for i := range messages {
			d.sendDelayed(strconv.Itoa(i), int32(i%2)*5)
		}

		time.Sleep(messages / concurrency * time.Second)
		time.Sleep(500 * time.Millisecond)
		cancel()
		<-done

		if len(seen) != messages || highest != concurrency || running != 0 {
			t.Fatalf("%d messages, %d at once, %d running after Serve", len(seen), highest, running)
		}
	})
}

func TestServe_contextEnds_waitsForInvocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "work", simaws.QueueConfig{})
		finished := false
		d.cloud.Map(d.url, simaws.Mapping{
			Invoke: func(ctx context.Context, _ []sqstypes.Message) ([]string, error) {
				<-ctx.Done()
				time.Sleep(3 * time.Second)

				finished = true

				return nil, nil
			},
		})
		d.send("x")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		d.cloud.Serve(ctx)

		if !finished {
			t.Fatal("Serve returned before the invocation")
		}

		time.Sleep(time.Hour)

		if len(d.receive(1)) != 0 {
			t.Fatal("the finished message was not deleted")
		}
	})
}

func TestServe_functionFails_redeliversAfterVisibilityTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := bubble(t, "inbox.fifo", simaws.QueueConfig{VisibilityTimeout: 10 * time.Second})
		times := []time.Duration{}
		start := time.Now()
		d.cloud.Map(d.url, simaws.Mapping{
			Invoke: func(context.Context, []sqstypes.Message) ([]string, error) {
				times = append(times, time.Since(start))
				if len(times) < 3 {
					return nil, errFunction
				}

				return nil, nil
			},
		})
		d.sendTo("g", "x")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		d.cloud.Serve(ctx)

		if fmt.Sprint(times) != "[0s 10s 20s]" {
			t.Fatal(times)
		}
	})
}
