package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// held returns the leases of records, read from the messages like by a worker in another language.
func held(t *testing.T, records []provider.Record) (leases []client.Lease) {
	t.Helper()
	for _, r := range records {
		var body struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil || body.Token == "" || len(body.Token) > 110 {
			t.Fatalf("got token %q, %v, want at most 110 characters", body.Token, err)
		}
		leases = append(leases, client.Lease{Token: body.Token, ReceiptHandle: r.ReceiptHandle})
	}
	return leases
}

// A worker in another language renews its work items by their tokens, and receives cancellations. An error of one lease
// does not affect the others.
func TestRenewWorkItems_tokens_extendLocksAndReturnCancels(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		c := client.New(f.Provider)
		in := f.jobsOf("a", job{}, job{}, job{}, job{}, job{}, job{})
		records := f.receive("sim://default")
		slices.SortFunc(records, func(a, b provider.Record) int { // activities 3 to 8
			return strings.Compare(a.Body, b.Body)
		})
		leases := held(t, records)
		f.cancel(in, 4)
		if err := f.Provider.DeleteRecords(ctx, "default", records[2], records[3]); err != nil {
			t.Fatal(err)
		}
		leases[4].Token = leases[4].Token[:len(leases[4].Token)-2] + "AA"
		leases[5].ReceiptHandle = "unknown"
		began := time.Now()
		got, err := c.RenewWorkItems(ctx, 45*time.Second, leases...)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{
			nil, nil, provider.ErrLockLost, provider.ErrLockLost, provider.ErrInvalidToken, provider.ErrLockLost,
		} {
			a := got[i]
			extended := a.ExpiresAt.Equal(began.Add(45 * time.Second))
			if !errors.Is(a.Err, want) || (want == nil) != extended || a.CancelErr != nil {
				t.Errorf("lease %d: got %+v, want error %v", i, a, want)
			}
		}
		x := got[1].Cancel
		if got[0].Cancel.Requested || !x.Requested || x.Reason != "select_loser" || x.Message != "too slow" ||
			x.RequestedAt.IsZero() {
			t.Errorf("got cancellations %+v, %+v, want only the second", got[0].Cancel, x)
		}
		f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if readsCancels(c) {
				return errors.New("refused")
			}
			return next()
		})
		got, err = c.RenewWorkItems(ctx, time.Minute, leases[:2]...)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got {
			if a.Err != nil || a.CancelErr == nil || a.ExpiresAt.IsZero() || a.Cancel.Requested {
				t.Errorf("got %+v, want an extended lease and an error of the cancel record", a)
			}
		}
	})
}

// A token of an activity does not expire. A renewal for an ended activity or an earlier attempt returns the
// cancellation of the activity. It extends the lock of the receipt handle if the caller still has the lock.
func TestRenewWorkItems_activityHasEnded_extendsTheLock(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		c := client.New(f.Provider)
		in := f.jobsOf("a", job{}, job{})
		records := f.receive("sim://default")
		leases := held(t, records)
		renewed := func(want error, reason string, leases ...client.Lease) {
			t.Helper()
			got, err := c.RenewWorkItems(ctx, time.Minute, leases...)
			if err != nil || !errors.Is(got[0].Err, want) || got[0].Cancel.Reason != reason {
				t.Errorf("got %+v, %v, want error %v and reason %q", got, err, want, reason)
			}
		}
		f.complete(in, 1, 3, 4) // the outcomes arrive while the messages are still locked
		f.turn(0)
		renewed(nil, "", leases[0])
		crossed := client.Lease{Token: leases[0].Token, ReceiptHandle: leases[1].ReceiptHandle}
		renewed(nil, "", crossed) // extends the lock of the other message
		time.Sleep(50 * time.Second)
		renewed(nil, "", crossed)
		time.Sleep(50 * time.Second)
		again := f.receive("sim://default")
		if len(again) != 1 || again[0].ID != records[0].ID {
			t.Fatalf("got %d visible messages, want the one whose lock was not extended", len(again))
		}
		renewed(provider.ErrLockLost, "", leases[0]) // another consumer has received the message
		renewed(nil, "", held(t, again)[0])
		if err := f.Provider.DeleteInstance(ctx, "a", true); err != nil {
			t.Fatal(err)
		}
		renewed(nil, "instance_deleted", held(t, again)[0])
	})
}

// A call renews a hundred leases of several queues and executions. It makes one call for ten locks and one read for
// each execution, and returns the results in the order of the leases.
func TestRenewWorkItems_hundredLeases_areRenewedInOneCall(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "here", inc)
	there := perdure.DefineActivity[int, int]("there", perdure.OnQueue("far"))
	perdure.AddActivity(r, "there", inc, perdure.OnQueue("far"))
	perdure.AddOrchestration(r, "both", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		var fs []*perdure.Future[int]
		for i := range n {
			fs = append(fs, perdure.CallActivityByName[int](ctx, "here", i), there.Call(ctx, i))
		}
		return sumOf(ctx, fs)
	})
	inBubble(t, simhub.Options{Registry: r}, func(ctx context.Context, h *hub) {
		c := client.New(h.Provider)
		for n := range 5 {
			h.startAs(fmt.Sprint("i-", n), "both", 10)
		}
		h.turn(0)
		var records []provider.Record
		for range 5 {
			records = append(append(records, h.receive("sim://default")...), h.receive("sim://far")...)
		}
		leases := held(t, records)
		if len(leases) != client.MaxLeases {
			t.Fatalf("got %d leases, want %d", len(leases), client.MaxLeases)
		}
		for i := range leases {
			if i%7 == 0 {
				leases[i].ReceiptHandle = "unknown"
			}
		}
		h.Cloud.ResetCounts()
		got, err := c.RenewWorkItems(ctx, time.Hour, leases...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			lost := errors.Is(got[i].Err, provider.ErrLockLost)
			if lost != (i%7 == 0) || lost == !got[i].ExpiresAt.IsZero() {
				t.Errorf("lease %d: got %+v, want lost: %v", i, got[i], i%7 == 0)
			}
		}
		n := h.Cloud.Counts()
		if n["SQS.ChangeMessageVisibilityBatch"] != 10 || n["DynamoDB.Query"] > 10 || n["DynamoDB.Query"] < 5 {
			t.Errorf("got calls %v, want 10 of SQS and 5 to 10 reads", n)
		}
		t.Logf("100 leases: %v", h.Cloud.Counts())
	})
}

// If all calls are throttled, each lease has an error soon and after few calls. If only the table or a part of the
// calls to SQS is throttled, the locks are extended.
func TestRenewWorkItems_throttled_returnsErrorsSoon(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		c := client.New(f.Provider)
		var records []provider.Record
		for n := range 100 {
			f.jobsOf(fmt.Sprint("i-", n), job{})
			records = append(records, f.receive("sim://default")...)
		}
		leases := held(t, records)
		throttle := func(which func(c simaws.Call) bool) {
			f.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
				if which(c) {
					return &throttled{}
				}
				return next()
			})
		}
		renewed := func() (extended, unknown int, took time.Duration, calls int) {
			before, began := len(f.made()), time.Now()
			got, err := c.RenewWorkItems(ctx, time.Hour, leases...)
			if err != nil || len(got) != 100 {
				t.Fatalf("got %d results, %v, want 100", len(got), err)
			}
			for i, a := range got {
				failed, ok := errors.AsType[*provider.Error](a.Err)
				if a.ExpiresAt.IsZero() != ok || ok && !failed.Retryable {
					t.Errorf("lease %d: got %+v, want an extended lock or a retryable error", i, a)
				}
				if !ok {
					extended++
				}
				if a.CancelErr != nil {
					unknown++
				}
			}
			return extended, unknown, time.Since(began), len(f.made()) - before
		}
		throttle(func(simaws.Call) bool { return true })
		if extended, unknown, took, calls := renewed(); extended != 0 || unknown != 100 || took > 2*time.Second ||
			calls > 24 {
			t.Errorf("all throttled: got %d extended, %d unknown after %v and %d calls", extended, unknown, took, calls)
		} else {
			t.Logf("100 leases of 100 executions, all throttled: %v, %d calls", took, calls)
		}
		throttle(readsCancels)
		if extended, unknown, _, calls := renewed(); extended != 100 || unknown != 100 || calls > 50 {
			t.Errorf("table throttled: got %d extended, %d unknown after %d calls", extended, unknown, calls)
		}
		var batches atomic.Int64 // calls are concurrent
		throttle(func(c simaws.Call) bool {
			_, locks := c.Input.(*sqs.ChangeMessageVisibilityBatchInput)
			return locks && batches.Add(1)%3 == 0
		})
		if extended, unknown, _, _ := renewed(); extended != 100 || unknown != 0 {
			t.Errorf("a third of the calls to SQS throttled: got %d extended, %d unknown", extended, unknown)
		}
	})
}

// throttled is AWS's error for too many requests.
type throttled struct{}

func (*throttled) Error() string     { return "slow down" }
func (*throttled) ErrorCode() string { return "ThrottlingException" }

// Invalid arguments return an error that names the field and its index. No lock is extended.
func TestRenewWorkItems_invalidArguments_areNamed(t *testing.T) {
	t.Parallel()
	onJobHub(t, func(ctx context.Context, f *jobHub) {
		c := client.New(f.Provider)
		f.jobsOf("a", job{})
		good := held(t, f.receive("sim://default"))[0]
		for name, x := range map[string]struct {
			visibility time.Duration
			leases     []client.Lease
			field      string
		}{
			"none":          {time.Minute, nil, "leases"},
			"too many":      {time.Minute, slices.Repeat([]client.Lease{good}, client.MaxLeases+1), "leases"},
			"no time":       {0, []client.Lease{good}, "visibilityTimeout"},
			"half a second": {1500 * time.Millisecond, []client.Lease{good}, "visibilityTimeout"},
			"too long":      {12*time.Hour + time.Second, []client.Lease{good}, "visibilityTimeout"},
			"no token":      {time.Minute, []client.Lease{good, {ReceiptHandle: "r"}}, "leases[1].token"},
			"no handle":     {time.Minute, []client.Lease{good, good, {Token: "t"}}, "leases[2].receiptHandle"},
			"large handle": {
				time.Minute,
				[]client.Lease{{Token: "t", ReceiptHandle: strings.Repeat("x", 2049)}},
				"leases[0].receiptHandle",
			},
		} {
			before := len(f.made())
			_, err := c.RenewWorkItems(ctx, x.visibility, x.leases...)
			if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != x.field ||
				len(f.made()) != before {
				t.Errorf("%s: got error %v and calls %v, want field %s and none",
					name, err, f.operations(before), x.field)
			}
		}
		same, err := c.RenewWorkItems(ctx, 12*time.Hour, slices.Repeat([]client.Lease{good}, client.MaxLeases)...)
		if err != nil || same[0].ExpiresAt.IsZero() || same[99].ExpiresAt.IsZero() {
			t.Errorf("the same lease a hundred times: got %+v, %v", same[0], err)
		}
		time.Sleep(time.Hour)
		late, err := c.RenewWorkItems(ctx, 12*time.Hour, good)
		if err != nil || !errors.Is(late[0].Err, provider.ErrLockLimit) || !late[0].ExpiresAt.IsZero() {
			t.Errorf("beyond 12 hours: got %+v, %v, want ErrLockLimit", late, err)
		}
	})
}
