package builds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// slowBuilds is a table with builds whose reads are slow.
type slowBuilds struct {
	table.API

	takes time.Duration
	fails error
	reads atomic.Int32
}

func (b *slowBuilds) Query(
	ctx context.Context, _ *dynamodb.QueryInput, _ ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	b.reads.Add(1)
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b.fails != nil {
		return nil, b.fails
	}
	return &dynamodb.QueryOutput{Items: []table.Item{{
		table.AttrSK: table.Str("b#1"), table.AttrBuild: table.Str(`{"orchestrations":{"order":["1.0.0"]}}`),
	}}}, nil
}

// onSlowBuilds runs f in a bubble, on a provider with slow builds.
func onSlowBuilds(
	t *testing.T, takes time.Duration,
	f func(ctx context.Context, b *slowBuilds, known func(ctx context.Context, name string) error),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &slowBuilds{takes: takes}
		bs := New(table.New(b, "t"), nil, nil, "h", time.Now, slog.New(slog.DiscardHandler))
		f(t.Context(), b, func(ctx context.Context, name string) error { return bs.known(ctx, name, "") })
	})
}

func TestKnown_anotherCallReadsBuilds_knownNameReturnsAtOnce(t *testing.T) {
	t.Parallel()
	onSlowBuilds(t, time.Second, func(ctx context.Context, b *slowBuilds, known func(context.Context, string) error) {
		if err := known(ctx, "order"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * cacheTime)
		go func() { _ = known(ctx, "order") }()
		synctest.Wait()
		began := time.Now()
		for range 100 {
			if err := known(ctx, "order"); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 0 || b.reads.Load() != 2 {
			t.Errorf("the calls waited %v; %d reads", took, b.reads.Load())
		}
		time.Sleep(time.Minute) // the read of the other call ends
	})
}

// A start that waits for the read of another call returns when its context ends.
func TestKnown_contextEndsDuringTheReadOfAnotherCall_returns(t *testing.T) {
	t.Parallel()
	onSlowBuilds(t, time.Hour, func(ctx context.Context, b *slowBuilds, known func(context.Context, string) error) {
		reader, stop := context.WithCancel(ctx)
		go func() { _ = known(reader, "order") }()
		synctest.Wait()
		brief, release := context.WithTimeout(ctx, time.Second)
		defer release()
		began := time.Now()
		if err := known(brief, "order"); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if n := b.reads.Load(); n != 1 {
			t.Errorf("%d concurrent reads", n)
		}
		stop()
		synctest.Wait()
	})
}

// If the context of the reading call ends, the waiting calls do not fail. One of them reads the builds.
func TestKnown_readingCallIsCancelled_waitingCallReads(t *testing.T) {
	t.Parallel()
	onSlowBuilds(t, 10*time.Second,
		func(ctx context.Context, b *slowBuilds, known func(context.Context, string) error) {
			reader, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			errs := make(chan error, 11)
			go func() { errs <- known(reader, "order") }()
			synctest.Wait()
			for range 10 {
				go func() { errs <- known(ctx, "order") }()
			}
			if err := <-errs; !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			for range 10 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if n := b.reads.Load(); n != 2 {
				t.Errorf("%d reads", n)
			}
		})
}

// Concurrent calls for names that no build has share a read that starts after the calls. They also share its failure.
func TestKnown_concurrentCallsForMissingNames_shareARead(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, errors.New("no")} {
		onSlowBuilds(t, time.Second,
			func(ctx context.Context, b *slowBuilds, known func(context.Context, string) error) {
				b.fails = fails
				want := fails
				if want == nil {
					want = provider.ErrUnknownOrchestration
				}
				errs := make(chan error, 1000)
				for n := range 1000 {
					go func() { errs <- known(ctx, fmt.Sprint("ordre-", n)) }()
				}
				for range 1000 {
					if err := <-errs; !errors.Is(err, want) {
						t.Error(err)
					}
				}
				if n := b.reads.Load(); n > 2 {
					t.Errorf("%d reads", n)
				}
			})
	}
}
