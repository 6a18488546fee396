package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// shop is a program that stores orders and starts an orchestration for each. Its items are in the table of the hub.
// tests/ministack has the same test with a separate table.
type shop struct {
	*hub
}

const counted = "3" // the result of the orchestration of an order

// prepare prepares the start of an order's orchestration.
func (s shop) prepare(ctx context.Context, id string, opts ...client.StartOption) (provider.PreparedStart, error) {
	return s.client.PrepareStart(ctx, "Counts", 3, append(opts, client.WithInstanceID(id))...)
}

func orderKey(id string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "order#" + id}, "sk": &types.AttributeValueMemberS{Value: "order"},
	}
}

// save writes a new order and the start of its orchestration in one transaction.
func (s shop) save(ctx context.Context, id string, start provider.PreparedStart) error {
	put := types.Put{
		TableName: aws.String("perdure"), Item: orderKey(id),
		ConditionExpression: aws.String("attribute_not_exists(pk)"),
	}
	writes := append([]types.TransactWriteItem{{Put: &put}}, dynamo.TransactItems(start)...)
	if _, err := s.Cloud.Table.TransactWriteItems(ctx,
		&dynamodb.TransactWriteItemsInput{TransactItems: writes}); err != nil {
		return fmt.Errorf("save order %s: %w", id, err)
	}
	return nil
}

func (s shop) has(id string) bool {
	s.t.Helper()
	out, err := s.Cloud.Table.GetItem(s.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("perdure"), Key: orderKey(id),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return len(out.Item) > 0
}

// take prepares and saves an order, and wakes its orchestration.
func (s shop) take(ctx context.Context, id string, opts ...client.StartOption) error {
	start, err := s.prepare(ctx, id, opts...)
	if err != nil {
		return err
	}
	if err := s.save(ctx, id, start); err != nil {
		return err
	}
	return start.Wake(ctx)
}

// prepared is like prepare, but fails the test on an error.
func (s shop) prepared(id string, opts ...client.StartOption) provider.PreparedStart {
	s.t.Helper()
	start, err := s.prepare(s.t.Context(), id, opts...)
	if err != nil {
		s.t.Fatal(err)
	}
	return start
}

// saved is like save, but fails the test on an error.
func (s shop) saved(id string, start provider.PreparedStart) {
	s.t.Helper()
	if err := s.save(s.t.Context(), id, start); err != nil {
		s.t.Fatal(err)
	}
}

// absent fails the test if an instance with the ID exists.
func (s shop) absent(id string) {
	s.t.Helper()
	if _, err := s.client.Status(s.t.Context(), id); !errors.Is(err, client.ErrNotFound) {
		s.t.Errorf("instance %q: %v", id, err)
	}
}

// inShop runs f with a shop in virtual time.
func inShop(t *testing.T, intercept simaws.Interceptor, f func(ctx context.Context, s shop)) {
	t.Helper()
	withFault(t, build(func(*perdure.Registry) {}), intercept, func(ctx context.Context, h *hub) { f(ctx, shop{h}) })
}

type dyingKey struct{}

// dying simulates a process that crashes before or after its n-th AWS call.
type dying struct {
	n     int
	after bool
	calls int
}

func (d *dying) intercept(ctx context.Context, _ simaws.Call, next func() error) error {
	if ctx.Value(dyingKey{}) == nil {
		return next()
	}
	if d.calls++; d.calls < d.n {
		return next()
	}
	if d.after && d.calls == d.n {
		_ = next()
	}
	return errors.New("the process is gone")
}

// The program crashes before or after each of its AWS calls. Either the order is saved and its orchestration runs, or
// neither happens.
func TestPrepareStart_processCrashesAtAnyCall_startsOrderAndInstanceOrNeither(t *testing.T) {
	t.Parallel()
	both, neither := 0, 0
	for n, over := 1, false; !over; n++ {
		for _, after := range []bool{false, true} {
			d := &dying{n: n, after: after}
			inShop(t, d.intercept, func(ctx context.Context, s shop) {
				err := s.take(context.WithValue(ctx, dyingKey{}, true), "o-1")
				over = d.calls < n
				if (err == nil) != over {
					t.Errorf("a process that dies at call %d: %v", n, err)
				}

				s.serve(15 * time.Minute)
				if !s.has("o-1") {
					neither++
					s.absent("o-1")
					return
				}
				both++
				s.completed("o-1", counted)
			})
		}
	}
	if neither < 2 || both < 4 {
		t.Errorf("both were there %d times, and neither was %d times", both, neither)
	}
}

// The program runs its transaction hours after the preparation, and crashes then. The creation time of the instance is
// older than the range of the next sweeps.
func TestPrepareStart_transactionHoursLater_startsInstance(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(_ context.Context, s shop) {
		start := s.prepared("o-1")
		s.serve(5 * time.Hour)
		s.absent("o-1")
		s.saved("o-1", start)
		s.serve(15 * time.Minute)
		s.completed("o-1", counted)
	})
}

func TestPrepareStart_transactionIsRejected_startsNothing(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		s.saved("o-1", s.prepared("i-1"))
		start := s.prepared("i-2")
		err := s.save(ctx, "o-1", start) // an order with this ID exists
		if err == nil || start.StartError(err) != nil {
			t.Errorf("%v, which is said to be for %v", err, start.StartError(err))
		}
		if err := start.Wake(ctx); err != nil { // the program does not check the error
			t.Error(err)
		}
		s.serve(15 * time.Minute)
		s.absent("i-2")
		s.completed("i-1", counted)
	})
}

// The order is repeated before and after the first transaction. Another start with the same ID is prepared before and
// after the transaction.
func TestPrepareStart_repeatedOrder_returnsAlreadyStartedOrExists(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		mine := client.WithIdempotencyKey("key-1")
		again, other := s.prepared("o-1", mine), s.prepared("o-1")
		s.saved("o-1", s.prepared("o-1", mine))

		for _, late := range []struct {
			start provider.PreparedStart
			want  error
		}{{again, client.ErrAlreadyStarted}, {other, client.ErrAlreadyExists}} {
			if err := s.save(ctx, "another", late.start); !errors.Is(late.start.StartError(err), late.want) {
				t.Errorf("%v: refused for %v, want %v", err, late.start.StartError(err), late.want)
			}
		}
		if _, err := s.prepare(ctx, "o-1", mine); !errors.Is(err, client.ErrAlreadyStarted) {
			t.Error(err)
		}
		_, err := s.prepare(ctx, "o-1")
		if taken, ok := errors.AsType[*client.AlreadyExistsError](err); !ok || taken.Holder() == "" {
			t.Errorf("%v: it does not say what has the id", err)
		}
		if s.has("another") {
			t.Error("an order is saved whose start was refused")
		}
		s.serve(15 * time.Minute)
		s.completed("o-1", counted)
	})
}

// An earlier incarnation of the ID is purged before or after the start is prepared.
func TestPrepareStart_purgedID_startsNewIncarnation(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		purge := func() {
			t.Helper()
			s.serve(15 * time.Minute)
			s.completed("o-1", counted)
			if err := s.client.Purge(ctx, "o-1"); err != nil {
				t.Fatal(err)
			}
		}
		s.start("o-1", "Counts", 3, client.WithIdempotencyKey("key-1"))
		purge()
		late := s.prepared("o-1")
		s.saved("o-1", s.prepared("o-1"))
		purge()

		if err := s.save(ctx, "o-2", late); !errors.Is(late.StartError(err), provider.ErrConflict) {
			t.Errorf("%v: refused for %v", err, late.StartError(err))
		}
		if _, err := s.prepare(ctx, "o-1", client.WithIdempotencyKey("key-1")); !errors.Is(err,
			client.ErrAlreadyExists) {
			t.Errorf("a start of a life that was purged: %v", err)
		}
		start := s.prepared("o-1")
		s.saved("o-2", start)
		o := must(s.Provider.ReadOrchestration(ctx, &provider.OrchestrationItem{InstanceID: "o-1"}, provider.Strong))
		if o.Head.Watermark == (provider.Position{}) {
			t.Error("messages of its last life would be taken for new ones")
		}
		s.serve(15 * time.Minute)
		s.completed("o-1", counted)
	})
}

// The order is repeated while the instance that it started is being purged.
func TestPrepareStart_purgeUnfinished_returnsAlreadyExists(t *testing.T) {
	t.Parallel()
	dead := false
	half := func(_ context.Context, c simaws.Call, next func() error) error {
		if dead && c.Operation == "PutItem" {
			return errors.New("the process is gone")
		}
		return next()
	}
	inShop(t, half, func(ctx context.Context, s shop) {
		mine := client.WithIdempotencyKey("key-1")
		s.start("o-1", "Counts", 3, mine)
		s.serve(15 * time.Minute)
		dead = true
		if err := s.client.Purge(ctx, "o-1"); err == nil {
			t.Fatal("the purge has come to its end")
		}
		if _, err := s.prepare(ctx, "o-1", mine); !errors.Is(err, client.ErrAlreadyExists) {
			t.Errorf("%v, want %v", err, client.ErrAlreadyExists)
		}
		dead = false
	})
}

// The tombstone of the previous incarnation expires after a month. DynamoDB deletes it between preparation and
// transaction.
func TestPrepareStart_tombstoneExpiresBeforeTransaction_startsInstance(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		s.start("o-1", "Counts", 3)
		s.serve(15 * time.Minute)
		if err := s.client.Purge(ctx, "o-1"); err != nil {
			t.Fatal(err)
		}
		start := s.prepared("o-1")
		tombstone := map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "i#o-1"}, "sk": &types.AttributeValueMemberS{Value: "i"},
		}
		if _, err := s.Cloud.Table.DeleteItem(ctx,
			&dynamodb.DeleteItemInput{TableName: aws.String("perdure"), Key: tombstone}); err != nil {
			t.Fatal(err)
		}
		if err := s.save(ctx, "o-1", start); err != nil {
			t.Fatalf("%v, which is said to be for %v", err, start.StartError(err))
		}
		s.serve(15 * time.Minute)
		s.completed("o-1", counted)
	})
}

func TestPrepareStart_withDelay_startsAfterDelay(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		begun, lost := s.prepared("o-1", client.WithDelay(6*time.Hour)),
			s.prepared("o-2", client.WithDelay(6*time.Hour))
		s.saved("o-1", begun)
		if err := begun.Wake(ctx); err != nil {
			t.Fatal(err)
		}
		s.saved("o-2", lost)
		s.serve(5 * time.Hour)
		for _, id := range []string{"o-1", "o-2"} {
			if got := s.status(id); got.Status != client.StatusPending {
				t.Errorf("%s is %s before its time", id, got.Status)
			}
		}
		s.ServeFor(ctx, time.Hour+time.Minute) // without a sweep
		s.completed("o-1", counted)
		s.completed("o-2", counted)
	})
}

// A transaction doubles the write units. The entry in the index byAttention, which the first turn removes, costs more
// units.
func TestPrepareStart_costsSixMoreWriteUnits(t *testing.T) {
	t.Parallel()
	inShop(t, nil, func(ctx context.Context, s shop) {
		cost := func(id string, start func()) float64 {
			before := s.Cloud.Capacity().Write
			start()
			s.ServeFor(ctx, time.Minute)
			s.completed(id, counted)
			return s.Cloud.Capacity().Write - before
		}
		plain := cost("i-1", func() { s.start("i-1", "Counts", 3) })
		item := cost("o-1", func() {
			if err := s.take(ctx, "o-1"); err != nil {
				t.Fatal(err)
			}
		})
		const order = 2 // a transaction writes an item twice
		if more := item - order - plain; more != 6 {
			t.Errorf("%v write units, %v for a start without a transaction: %v more", item-order, plain, more)
		}
	})
}
