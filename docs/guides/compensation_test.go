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

// Trip is a flight and a hotel. Its ID is the prefix of their keys.
type Trip struct {
	ID   string `json:"id"`
	City string `json:"city"`
}

var (
	bookingTime = perdure.WithScheduleToCloseTimeout(time.Hour)
	untilDone   = perdure.WithRetry(perdure.RetryPolicy{MaxInterval: time.Minute}) // without limit
)

func BookTrip(ctx *perdure.OrchestrationContext, t Trip) (none struct{}, err error) {
	flight := Booking{Key: t.ID + "/flight", Item: "flight to " + t.City}
	_, err = perdure.CallActivity(ctx, agency.Book, flight, perdure.WaitForCancellation(), bookingTime).Await(ctx)
	defer perdure.Compensate(ctx, &err, cancelBooking(flight)) // before the error is checked
	if err != nil {
		return none, err
	}

	hotel := Booking{Key: t.ID + "/hotel", Item: "hotel in " + t.City}
	_, err = perdure.CallActivity(ctx, agency.Book, hotel, perdure.WaitForCancellation(), bookingTime).Await(ctx)
	defer perdure.Compensate(ctx, &err, cancelBooking(hotel))
	return none, err
}

func cancelBooking(b Booking) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		_, err := perdure.CallActivity(ctx, agency.Cancel, b.Key, untilDone).Await(ctx)
		return err
	}
}

// Booking has a key that the caller chooses, so that the caller can cancel it even if the response is lost.
type Booking struct {
	Key  string `json:"key"`
	Item string `json:"item"`
}

// travelAgency books in 100 ms for each letter of the item, ignores cancellation, and has no hotel in Bergen.
type travelAgency struct {
	mu        sync.Mutex
	calls     []string
	cancelled map[string]bool
}

var agency = &travelAgency{cancelled: map[string]bool{}}

func (a *travelAgency) Book(_ context.Context, b Booking) (none struct{}, err error) {
	time.Sleep(time.Duration(len(b.Item)) * time.Second / 10)
	if b.Item == "hotel in Bergen" {
		return none, errors.New("sold out")
	}
	if a.isCancelled(b.Key) {
		return none, errors.New("cancelled before")
	}
	a.record("booked " + b.Key)
	return none, nil
}

// Cancel cancels the booking with a key, if there is one. The agency rejects later bookings with the key.
func (a *travelAgency) Cancel(_ context.Context, key string) (none struct{}, err error) {
	a.record("cancelled " + key)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancelled[key] = true
	return none, nil
}

func (a *travelAgency) isCancelled(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cancelled[key]
}

func (a *travelAgency) record(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
}

// takeCalls returns the calls since the last takeCalls, and forgets all cancelled keys.
func (a *travelAgency) takeCalls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	calls := a.calls
	a.calls = nil
	clear(a.cancelled)
	return calls
}

func BookAll(ctx *perdure.OrchestrationContext, bookings []Booking) (none struct{}, err error) {
	var calls []perdure.Awaitable
	for _, b := range bookings {
		calls = append(calls, perdure.CallActivity(ctx, agency.Book, b, perdure.WaitForCancellation()))
	}
	err = perdure.WhenAll(ctx, calls...)
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		var undos []perdure.Awaitable
		for _, b := range bookings {
			undos = append(undos, perdure.CallActivity(ctx, agency.Cancel, b.Key, untilDone))
		}
		return perdure.WhenAll(ctx, undos...)
	})
	return none, err
}

func TestCompensate_failureOrCancellation_undoesBookings(t *testing.T) {
	t.Parallel()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "book", agency.Book)
	perdure.AddActivity(r, "cancel-booking", agency.Cancel)
	perdure.AddOrchestration(r, "book-trip", BookTrip)
	perdure.AddOrchestration(r, "book-all", BookAll)
	parallel := []Booking{{Key: "1", Item: "tent"}, {Key: "2", Item: "hotel in Bergen"}, {Key: "3", Item: "rental car"}}
	for name, c := range map[string]struct {
		orchestration string
		input         any
		cancelAfter   time.Duration // 0 means never
		status        client.RuntimeStatus
		calls         []string
	}{
		"success": {
			"book-trip",
			Trip{"1", "Oslo"},
			0, client.StatusCompleted,
			[]string{"booked 1/flight", "booked 1/hotel"},
		},
		"hotel fails": {
			"book-trip",
			Trip{"1", "Bergen"},
			0, client.StatusFailed,
			[]string{"booked 1/flight", "cancelled 1/hotel", "cancelled 1/flight"},
		},
		"cancelled in a call": {
			"book-trip",
			Trip{"1", "Oslo"},
			time.Second, client.StatusCancelled,
			[]string{"booked 1/flight", "cancelled 1/flight"},
		},
		"parallel, hotel fails": {
			"book-all", parallel, 0, client.StatusFailed,
			[]string{"booked 1", "booked 3", "cancelled 1", "cancelled 2", "cancelled 3"},
		},
	} {
		env := perduretest.New(t, r)
		id, err := env.Client().Start(t.Context(), c.orchestration, c.input)
		if err != nil {
			t.Fatal(err)
		}
		if c.cancelAfter > 0 {
			env.AfterFunc(c.cancelAfter, func() {
				if err := env.Client().Cancel(t.Context(), id, "the customer changed plans"); err != nil {
					t.Error(err)
				}
			})
		}
		s, err := env.Client().Wait(t.Context(), id)
		if calls := agency.takeCalls(); err != nil || s.Status != c.status || !slices.Equal(calls, c.calls) {
			t.Errorf("%s: %s, %q, %v", name, s.Status, calls, err)
		}
	}
}

func TestAgency_bookingAfterCancel_isRejected(t *testing.T) {
	t.Parallel()
	a := &travelAgency{cancelled: map[string]bool{}}
	if _, err := a.Cancel(t.Context(), "1"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Book(t.Context(), Booking{Key: "1"}); err == nil {
		t.Error("booked after the cancellation")
	}
}
