package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
)

// recorded returns the record that workers have written about an activity.
func (f *jobHub) recorded(in provider.Instance, id int64) provider.ActivityRecord {
	f.t.Helper()
	r, err := f.Provider.ReadActivityRecord(f.t.Context(), in.ExecutionID, id)
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

// recordWrites returns the writes of activity records.
func (f *jobHub) recordWrites() (writes []*dynamodb.UpdateItemInput) {
	for _, c := range f.made() {
		if in, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.HasPrefix(text(in.Key, "sk"), "a#") {
			writes = append(writes, in)
		}
	}
	return writes
}

// recordReads returns the number of reads of activity records.
func (f *jobHub) recordReads() (n int) {
	for _, c := range f.made() {
		if in, ok := c.Input.(*dynamodb.GetItemInput); ok && strings.HasPrefix(text(in.Key, "sk"), "a#") {
			n++
		}
	}
	return n
}

func TestActivityRecord_cancelledActivityEnds_hasTheOutcome(t *testing.T) {
	t.Parallel()
	for end, c := range map[provider.CancelOutcome]struct {
		job   job
		takes time.Duration // from the observation of the cancellation to the end
	}{
		provider.OutcomeStopped:   {job{Takes: time.Hour, Longer: 4 * time.Second, Fails: true}, 4 * time.Second},
		provider.OutcomeCompleted: {job{Takes: time.Hour, Longer: 9 * time.Second}, 9 * time.Second},
		provider.OutcomeAbandoned: {ignoresCancel, 10 * time.Second},
	} {
		t.Run(string(end), func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", c.job)
				over := f.handled(ctx, f.worker(nil))
				time.Sleep(time.Minute + 500*time.Millisecond)
				f.cancel(in, 3)
				queried := time.Now()
				if failed := <-over; len(failed) > 0 {
					t.Errorf("got failed records %v, want none", failed)
				}
				r := f.recorded(in, 3)
				if after := r.SeenAt.Sub(queried); r.CancelOutcome != end || after < 0 || after > time.Second ||
					r.EndedAt.Sub(r.SeenAt) != c.takes {
					t.Errorf("cancelled at %v: got record %+v, want %s %v after the observation",
						queried, r, end, c.takes)
				}
				f.wantNoRedelivery()
			})
		})
	}
}

func TestActivityRecord_activityNeverStarted_hasTheOutcome(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever, job{}, forever)
		f.cancel(in, 3, 5)
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) > 0 {
			t.Errorf("got failed records %v, want none", failed)
		}
		for id, want := range map[int64]provider.CancelOutcome{
			3: provider.OutcomeNeverStarted, 4: "", 5: provider.OutcomeNeverStarted,
		} {
			if r := f.recorded(in, id); r.CancelOutcome != want ||
				want != "" &&
					(!r.SeenAt.Equal(time.Now()) && time.Since(r.SeenAt) > time.Second || !r.EndedAt.Equal(r.SeenAt)) {
				t.Errorf("#%d: got record %+v, want outcome %q", id, r, want)
			}
		}
	})
}

// The worker writes the record before it sends the outcome and deletes the work item.
func TestActivityRecord_cancelledActivityEnds_isWrittenBeforeTheOutcomeIsSent(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		over := f.handled(ctx, f.worker(nil))
		time.Sleep(time.Minute + 300*time.Millisecond) // between two polls
		f.cancel(in, 3)
		made := len(f.made())
		<-over
		ops := slices.DeleteFunc(f.operations(made), func(op string) bool { return op == "GetItem" || op == "Query" })
		if got := strings.Join(ops, " "); got != "UpdateItem SendMessageBatch DeleteMessageBatch" {
			t.Errorf("got calls %s, want the record, the outcome, and the deletion", got)
		}
	})
}

func TestActivityRecord_activityIsNotCancelled_isNotWritten(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", job{}, job{Takes: time.Minute}, forever, ignoresCancel)
		ctx, stop := context.WithTimeout(ctx, 5*time.Minute) // the worker releases the last two
		defer stop()
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) != 2 {
			t.Errorf("got failed records %v, want two", failed)
		}
		if writes, reads := len(f.recordWrites()), f.recordReads(); writes != 2 || reads > 0 {
			t.Errorf("got %d writes and %d reads of records, want only the 2 deadlines of the last activities",
				writes, reads)
		}
	})
}

// 1. A worker stops a cancelled activity, and the deletion of its work item fails.
// 2. SQS redelivers the work item. The next worker reads the cancellation and does not start the activity.
// 3. The record still has the outcome that the first worker wrote.
func TestActivityRecord_secondDelivery_keepsTheOutcome(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", forever)
		refused := f.failing("DeleteMessageBatch")
		refused.Store(true)
		records, over := f.receive("sim://default"), make(chan []string)
		go func() {
			over <- f.worker(nil).HandleRecords(ctx, records)
		}() // the mapping does not delete the record either
		time.Sleep(time.Minute)
		f.cancel(in, 3)
		<-over
		refused.Store(false)
		first := f.recorded(in, 3)
		time.Sleep(20 * time.Minute)
		if failed := <-f.handled(ctx, f.worker(nil)); len(failed) > 0 || f.ran() != 1 {
			t.Errorf("got failed records %v and %d runs, want none and 1", failed, f.ran())
		}
		writes := len(f.recordWrites())
		if r := f.recorded(in, 3); first.CancelOutcome != provider.OutcomeStopped ||
			r.CancelOutcome != first.CancelOutcome || !r.SeenAt.Equal(first.SeenAt) ||
			!r.EndedAt.Equal(first.EndedAt) || writes != 2 {
			t.Errorf("got record %+v, then %+v, after %d writes", first, r, writes)
		}
		f.wantNoRedelivery()
	})
}

// The write of a record is best effort. The worker sends the outcome even if the write fails.
func TestActivityRecord_writeFails_outcomeIsSent(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"the write fails": false, "the write hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJobHub(t, func(ctx context.Context, f *jobHub) {
				in := f.jobsOf("a", forever, ignoresCancel)
				queued := f.jobsOf("b", job{})
				f.interfere(func(ctx context.Context, c simaws.Call, next func() error) error {
					if up, ok := c.Input.(*dynamodb.UpdateItemInput); !ok ||
						!strings.HasPrefix(text(up.Key, "sk"), "a#") {
						return next()
					}
					if hangs {
						<-ctx.Done()
						return ctx.Err()
					}
					return context.Canceled
				})
				f.cancel(queued, 3)
				over := f.handled(ctx, f.worker(nil))
				time.Sleep(time.Minute + 500*time.Millisecond)
				f.cancel(in, 3, 4)
				queried := time.Now()
				if failed := <-over; len(failed) > 0 || time.Since(queried) > 12*time.Second {
					t.Errorf("got failed records %v after %v, want none within 12s", failed, time.Since(queried))
				}
				if f.wantSent(1); f.ran() != 2 {
					t.Errorf("got %d runs, want 2", f.ran())
				}
				for _, end := range []string{"end=never_started", "end=stopped", "end=leaked"} {
					if !strings.Contains(f.log.String(), end) {
						t.Errorf("the log lacks %s:\n%s", end, f.log.String())
					}
				}
				f.wantNoRedelivery()
			})
		})
	}
}

// A cancelled activity loses its lock in the grace period. Another worker has the work item and writes the record.
func TestActivityRecord_lockIsLost_isNotWritten(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{Takes: time.Hour, Longer: 9 * time.Second})
		refused := f.failing("ChangeMessageVisibilityBatch")
		over := f.handled(ctx, f.worker(nil)) // takes the lease at 3 s, for 30 s
		time.Sleep(10 * time.Second)
		refused.Store(true)
		time.Sleep(18500 * time.Millisecond)
		f.cancel(in, 3)
		if failed := <-over; len(failed) != 1 {
			t.Errorf("got failed records %v, want 1", failed)
		}
		f.wantCause(3, perdure.ReasonSelectLoser)
		if n := len(f.recordWrites()); n > 0 {
			t.Errorf("got %d writes of records, want none", n)
		}
	})
}

// A process that stops has released the work item before it reads the cancellation.
func TestActivityRecord_recordIsReleased_isNotWritten(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		in := f.jobsOf("a", job{})
		f.cancel(in, 3)
		records := f.receive("sim://default")
		records[0].Hold = provider.NewHold(time.Now(), time.Minute)
		records[0].EndHold()
		f.worker(nil).HandleRecords(ctx, records)
		if n := len(f.recordWrites()); n > 0 || f.ran() > 0 {
			t.Errorf("got %d writes of records and %d runs, want none", n, f.ran())
		}
	})
}

// If an activity fails after its worker began to stop, it is retried. The worker records no outcome.
func TestActivityRecord_workerStops_isNotWritten(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		f.jobsOf("a", forever, ignoresCancel)
		stop := f.polled(ctx, f.Provider, "default", f.worker(nil).HandleRecords,
			dispatch.PollOptions{GracePeriod: 5 * time.Second})
		time.Sleep(time.Minute)
		_ = stop()
		synctest.Wait()
		if n := len(f.recordWrites()); n > 0 {
			t.Errorf("got %d writes of records, want none", n)
		}
	})
}
