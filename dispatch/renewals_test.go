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

// held are the leases of records, as somebody reads them off the messages who has no code of ours.
func held(t *testing.T, records []provider.Record) (leases []client.Lease) {
	t.Helper()
	for _, r := range records {
		var body struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil || body.Token == "" || len(body.Token) > 110 {
			t.Fatalf("token %q, %v", body.Token, err)
		}
		leases = append(leases, client.Lease{Token: body.Token, ReceiptHandle: r.ReceiptHandle})
	}
	return leases
}

// Whoever holds a work item and has no code of ours renews it by its token, and hears that its activity is cancelled. What is wrong with
// one lease is no harm to the others.
func TestALeaseIsRenewedByItsTokenAndAnswersTheCancel(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		c := client.New(f.Provider)
		in := f.jobsOf("a", job{}, job{}, job{}, job{}, job{}, job{})
		records := f.receive("sim://default")
		slices.SortFunc(records, func(a, b provider.Record) int { return strings.Compare(a.Body, b.Body) }) // activities 3 to 8
		leases := held(t, records)
		f.cancel(in, 4)
		if err := f.Provider.DeleteRecords(ctx, "default", records[2], records[3]); err != nil {
			t.Fatal(err)
		}
		leases[4].Token = leases[4].Token[:len(leases[4].Token)-2] + "AA"
		leases[5].ReceiptHandle = "nobody's"
		began := time.Now()
		got, err := c.RenewWorkItems(ctx, 45*time.Second, leases...)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []error{nil, nil, provider.ErrLockLost, provider.ErrLockLost, provider.ErrInvalidToken, provider.ErrLockLost} {
			if a := got[i]; !errors.Is(a.Err, want) || (want == nil) != a.ExpiresAt.Equal(began.Add(45*time.Second)) || a.CancelErr != nil {
				t.Errorf("lease %d: %+v, want %v", i, a, want)
			}
		}
		if x := got[1].Cancel; got[0].Cancel.Requested || !x.Requested || x.Reason != "select_loser" || x.Message != "too slow" || x.RequestedAt.IsZero() {
			t.Errorf("cancels %+v, %+v", got[0].Cancel, x)
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
				t.Errorf("nobody knows whether it is cancelled: %+v", a)
			}
		}
	})
}

// A token names an activity for ever: of one that has ended, or of an earlier attempt, it extends what the receipt handle is of, if that is still the
// caller's, and answers what is true of the activity.
func TestALeaseOfWhatIsOverAnswersWhatIsTrue(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		c := client.New(f.Provider)
		in := f.jobsOf("a", job{}, job{})
		records := f.receive("sim://default")
		leases := held(t, records)
		renewed := func(want error, reason string, leases ...client.Lease) {
			t.Helper()
			got, err := c.RenewWorkItems(ctx, time.Minute, leases...)
			if err != nil || !errors.Is(got[0].Err, want) || got[0].Cancel.Reason != reason {
				t.Errorf("%+v, %v; want %v and %q", got, err, want, reason)
			}
		}
		f.complete(in, 1, 3, 4) // told twice: the messages are still held
		f.turn(0)
		renewed(nil, "", leases[0])
		crossed := client.Lease{Token: leases[0].Token, ReceiptHandle: leases[1].ReceiptHandle}
		renewed(nil, "", crossed) // the lock of the other message of the queue
		time.Sleep(50 * time.Second)
		renewed(nil, "", crossed)
		time.Sleep(50 * time.Second)
		again := f.receive("sim://default")
		if len(again) != 1 || again[0].ID != records[0].ID {
			t.Fatalf("%d messages are visible, want the one whose lock was not extended", len(again))
		}
		renewed(provider.ErrLockLost, "", leases[0]) // received by another now
		renewed(nil, "", held(t, again)[0])
		if err := f.Provider.DeleteInstance(ctx, "a", true); err != nil {
			t.Fatal(err)
		}
		renewed(nil, "instance_deleted", held(t, again)[0])
	})
}

// A hundred leases of several queues and executions: a call for ten locks, a read for each execution, and each is answered in its place.
func TestAHundredLeasesOfTwoQueuesAreRenewedAtOnce(t *testing.T) {
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
			t.Fatalf("%d leases", len(leases))
		}
		for i := range leases {
			if i%7 == 0 {
				leases[i].ReceiptHandle = "nobody's"
			}
		}
		h.Cloud.ResetCounts()
		got, err := c.RenewWorkItems(ctx, time.Hour, leases...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if lost := errors.Is(got[i].Err, provider.ErrLockLost); lost != (i%7 == 0) || lost == !got[i].ExpiresAt.IsZero() {
				t.Errorf("lease %d: %+v", i, got[i])
			}
		}
		if n := h.Cloud.Counts(); n["SQS.ChangeMessageVisibilityBatch"] != 10 || n["DynamoDB.Query"] > 10 || n["DynamoDB.Query"] < 5 {
			t.Errorf("calls %v", n)
		}
		t.Logf("100 leases: %v", h.Cloud.Counts())
	})
}

// Everything is throttled: each lease is answered, soon, and with few calls. Where the queue alone is throttled, or a part of what it is asked, the
// rest is extended.
func TestThrottledRenewalsEndSoonAndSaySo(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
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
				t.Fatalf("%d answers, %v", len(got), err)
			}
			for i, a := range got {
				failed, ok := errors.AsType[*provider.Error](a.Err)
				if a.ExpiresAt.IsZero() != ok || ok && !failed.Retryable {
					t.Errorf("lease %d: %+v", i, a)
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
		if extended, unknown, took, calls := renewed(); extended != 0 || unknown != 100 || took > 2*time.Second || calls > 24 {
			t.Errorf("all throttled: %d extended, %d unknown, after %v and %d calls", extended, unknown, took, calls)
		} else {
			t.Logf("100 leases of 100 executions, all throttled: %v, %d calls", took, calls)
		}
		throttle(readsCancels)
		if extended, unknown, _, calls := renewed(); extended != 100 || unknown != 100 || calls > 50 {
			t.Errorf("the table throttled: %d extended, %d unknown, %d calls", extended, unknown, calls)
		}
		var batches atomic.Int64 // calls are made side by side
		throttle(func(c simaws.Call) bool {
			_, locks := c.Input.(*sqs.ChangeMessageVisibilityBatchInput)
			return locks && batches.Add(1)%3 == 0
		})
		if extended, unknown, _, _ := renewed(); extended != 100 || unknown != 0 {
			t.Errorf("a third throttled: %d extended, %d unknown", extended, unknown)
		}
	})
}

// throttled is what AWS answers to too much.
type throttled struct{}

func (*throttled) Error() string     { return "slow down" }
func (*throttled) ErrorCode() string { return "ThrottlingException" }

// What is wrong with what is asked for is named, with its index, and nothing is extended.
func TestLeasesThatAreNoneAreNamed(t *testing.T) {
	t.Parallel()
	onFloor(t, func(ctx context.Context, f *floor) {
		c := client.New(f.Provider)
		f.jobsOf("a", job{})
		good := held(t, f.receive("sim://default"))[0]
		for name, x := range map[string]struct {
			visibility time.Duration
			leases     []client.Lease
			field      string
		}{
			"none":           {time.Minute, nil, "leases"},
			"too many":       {time.Minute, slices.Repeat([]client.Lease{good}, client.MaxLeases+1), "leases"},
			"no time":        {0, []client.Lease{good}, "visibilityTimeout"},
			"half a second":  {1500 * time.Millisecond, []client.Lease{good}, "visibilityTimeout"},
			"too long":       {12*time.Hour + time.Second, []client.Lease{good}, "visibilityTimeout"},
			"no token":       {time.Minute, []client.Lease{good, {ReceiptHandle: "r"}}, "leases[1].token"},
			"no handle":      {time.Minute, []client.Lease{good, good, {Token: "t"}}, "leases[2].receiptHandle"},
			"a large handle": {time.Minute, []client.Lease{{Token: "t", ReceiptHandle: strings.Repeat("x", 2049)}}, "leases[0].receiptHandle"},
		} {
			before := len(f.made())
			_, err := c.RenewWorkItems(ctx, x.visibility, x.leases...)
			if field, ok := errors.AsType[*provider.FieldError](err); !ok || field.Field != x.field || len(f.made()) != before {
				t.Errorf("%s: %v, and %v", name, err, f.operations(before))
			}
		}
		same, err := c.RenewWorkItems(ctx, 12*time.Hour, slices.Repeat([]client.Lease{good}, client.MaxLeases)...)
		if err != nil || same[0].ExpiresAt.IsZero() || same[99].ExpiresAt.IsZero() {
			t.Errorf("the same a hundred times: %+v, %v", same[0], err)
		}
		time.Sleep(time.Hour)
		late, err := c.RenewWorkItems(ctx, 12*time.Hour, good)
		if err != nil || !errors.Is(late[0].Err, provider.ErrLockLimit) || !late[0].ExpiresAt.IsZero() {
			t.Errorf("beyond 12 hours: %+v, %v", late, err)
		}
	})
}
