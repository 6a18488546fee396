package guides_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
)

// journey is what is booked: its id is the key of all that belongs to it.
type journey struct {
	ID   string `json:"id"`
	City string `json:"city"`
}

func bookJourney(ctx *perdure.OrchestrationContext, j journey) (none struct{}, err error) {
	flight := booking{Key: j.ID + "/flight", What: "a flight to " + j.City}
	_, err = perdure.CallActivity(ctx, agency.book, flight, perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, unbook(flight)) // before the error is looked at
	if err != nil {
		return none, err
	}

	hotel := booking{Key: j.ID + "/hotel", What: "a hotel in " + j.City}
	_, err = perdure.CallActivity(ctx, agency.book, hotel, perdure.WaitForCancellation()).Await(ctx)
	defer perdure.Compensate(ctx, &err, unbook(hotel))
	return none, err
}

func unbook(b booking) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, agency.cancel, b.Key, perdure.WithRetry(perdure.RetryPolicy{})).Await(ctx)
		return err
	}
}

// booking has a key that whoever books chooses: by it a booking is made once, and given back, whatever became of the answer.
type booking struct {
	Key  string `json:"key"`
	What string `json:"what"`
}

// travelAgency takes a tenth of a second for each letter, does not hear of a cancel, and has no room in Atlantis.
type travelAgency struct {
	mu  sync.Mutex
	did []string
}

var agency = &travelAgency{}

func (a *travelAgency) book(_ context.Context, b booking) (none struct{}, err error) {
	time.Sleep(time.Duration(len(b.What)) * time.Second / 10)
	if b.What == "a hotel in Atlantis" {
		return none, errors.New("there is none")
	}
	a.note("booked " + b.Key)
	return none, nil
}

// cancel gives back what was booked under a key; where that is nothing it does nothing.
func (a *travelAgency) cancel(_ context.Context, key string) (none struct{}, err error) {
	a.note("gave back " + key)
	return none, nil
}

func (a *travelAgency) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.did = append(a.did, what)
}

func (a *travelAgency) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	did := a.did
	a.did = nil
	return did
}

func bookAll(ctx *perdure.OrchestrationContext, bookings []booking) (none struct{}, err error) {
	var all []perdure.Awaitable
	for _, b := range bookings {
		all = append(all, perdure.CallActivity(ctx, agency.book, b, perdure.WaitForCancellation()))
	}
	err = perdure.WhenAll(ctx, all...)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		var undone []perdure.Awaitable
		for _, b := range bookings {
			undone = append(undone, perdure.CallActivity(ctx, agency.cancel, b.Key, perdure.WithRetry(perdure.RetryPolicy{})))
		}
		return perdure.WhenAll(ctx, undone...)
	})
	return none, err
}

func TestUndoing(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "book", agency.book)
	perdure.AddActivity(r, "cancel-booking", agency.cancel)
	perdure.AddOrchestration(r, "book-journey", bookJourney)
	perdure.AddOrchestration(r, "book-all", bookAll)
	three := []booking{{Key: "1", What: "a tent"}, {Key: "2", What: "a hotel in Atlantis"}, {Key: "3", What: "a sailing boat"}}
	for name, c := range map[string]struct {
		name   string
		in     any
		cancel time.Duration // when; 0: never
		status client.RuntimeStatus
		did    []string
	}{
		"it is booked":            {"book-journey", journey{"1", "Oslo"}, 0, client.StatusCompleted, []string{"booked 1/flight", "booked 1/hotel"}},
		"one has failed":          {"book-journey", journey{"1", "Atlantis"}, 0, client.StatusFailed, []string{"booked 1/flight", "gave back 1/hotel", "gave back 1/flight"}},
		"cancelled on the way":    {"book-journey", journey{"1", "Oslo"}, time.Second, client.StatusCancelled, []string{"booked 1/flight", "gave back 1/flight"}},
		"side by side, one fails": {"book-all", three, 0, client.StatusFailed, []string{"booked 1", "booked 3", "gave back 1", "gave back 2", "gave back 3"}},
	} {
		env := perduretest.New(t, r)
		id, err := env.Client().Start(t.Context(), c.name, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if c.cancel > 0 {
			env.At(c.cancel, func() {
				if err := env.Client().Cancel(t.Context(), id, "it rains there"); err != nil {
					t.Error(err)
				}
			})
		}
		s, err := env.Client().Wait(t.Context(), id)
		if did := agency.take(); err != nil || s.Status != c.status || !slices.Equal(did, c.did) {
			t.Errorf("%s: %s, %q, %v", name, s.Status, did, err)
		}
	}
}
