package orders

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// EventPacked is the external event that the warehouse raises once the parcel stands ready. It needs no data.
const EventPacked = "packed"

// The custom statuses of an order.
const (
	Reserving = "reserving"
	Charging  = "charging"
	Packing   = "waiting to be packed"
	Shipping  = "shipping"
	Undoing   = "undoing"
)

// The activities, by reference: callers need their names and types, not their implementations.
var (
	reserveStock = perdure.DefineActivity[Line, Reservation]("reserve-stock")
	releaseStock = perdure.DefineActivity[Reservation, struct{}]("release-stock")
	chargeCard   = perdure.DefineActivity[Payment, Receipt]("charge-card")
	refundCard   = perdure.DefineActivity[Payment, struct{}]("refund-card")
)

// Other systems are down now and then: what is asked of them is tried again. A no, as opposed to a silence, stays one.
var retried = perdure.WithRetry(perdure.RetryPolicy{
	MaxAttempts:     6,
	InitialInterval: 500 * time.Millisecond,
	NonRetryable:    []string{CardDeclined},
})

// What is undone is money and stock that hang in the air, so it is tried for about a day before a person must look.
var stubbornly = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 36})

// FulfilOrder brings an order to the customer's door. Whatever keeps it from getting there, what was done is undone: an order
// ends with everything or with nothing.
func FulfilOrder(ctx *perdure.OrchestrationContext, o Order) (Fulfilment, error) {
	f, err := fulfil(ctx, o)
	if e, ok := errors.AsType[*unfulfilledError](err); ok {
		f = e.fulfilment
		if err == error(e) { //nolint:errorlint // all was undone: nothing is joined to it
			err = nil
		}
	}
	return f, err // people need both: why it was undone, and what could not be
}

// fulfil goes as far as it can, and undoes what it did when that is not to the door.
func fulfil(ctx *perdure.OrchestrationContext, o Order) (f Fulfilment, err error) {
	held, err := reserveAll(ctx, o.Lines)
	defer perdure.Compensate(ctx, &err, undo("release the stock", func(ctx *perdure.OrchestrationContext) error { return releaseAll(ctx, held) }))
	if err != nil {
		return f, fmt.Errorf("reserve: %w", err)
	}
	if short := shortOf(held); len(short) > 0 {
		return f, &unfulfilledError{Fulfilment{Status: StatusBackOrder, Short: short}}
	}
	p := Payment{Key: ctx.ExecutionID(), Token: o.Card.Token, Cents: o.Total()}
	receipt, paid, err := charge(ctx, o, p)
	if !declined(err) { // after anything but a no the money may have moved, and only the answer was lost: then it goes back as well
		defer perdure.Compensate(ctx, &err, undo("refund the card", func(ctx *perdure.OrchestrationContext) error { return refund(ctx, p) }))
	}
	switch {
	case err != nil:
		return f, fmt.Errorf("charge %d cents: %w", o.Total(), err)
	case !paid:
		return f, &unfulfilledError{Fulfilment{Status: StatusUnpaid}}
	}
	packed, err := waitUntilPacked(ctx, o)
	if err == nil && !packed {
		err = &unfulfilledError{Fulfilment{Status: StatusCancelled, Receipt: &receipt}}
	}
	if err != nil {
		return f, err
	}
	ctx.SetCustomStatus(Shipping)
	ctx = perdure.WithoutCancel(ctx) // what is on its way cannot be called back
	shipment, err := perdure.CallSubOrchestration(ctx, ShipOrder, Parcel{OrderID: o.ID, To: o.ShipTo, Reservations: held}).Await(ctx)
	if err != nil {
		return f, fmt.Errorf("ship: %w", err)
	}
	if shipment.Lost {
		held = nil // it left with the parcel: the money is all that can be given back
		return f, &unfulfilledError{Fulfilment{Status: StatusLost, Receipt: &receipt, Shipment: &shipment}}
	}
	ctx.Logger().Info("order delivered", "order", o.ID, "tracking", shipment.Tracking)
	return Fulfilment{Status: StatusDelivered, Receipt: &receipt, Shipment: &shipment}, nil
}

// unfulfilledError is an order that came to an end other than the door, with nothing wrong: what it did is to be undone all the same.
type unfulfilledError struct{ fulfilment Fulfilment }

// Error implements error.
func (e *unfulfilledError) Error() string { return "the order is " + e.fulfilment.Status }

// undo shows what is undone, in the status and where it fails.
func undo(what string, how func(*perdure.OrchestrationContext) error) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		ctx.SetCustomStatus(Undoing)
		if err := how(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// reserveAll reserves every line at once and waits for all: an order of twenty lines takes as long as one of one. Where one
// fails, or the order is cancelled, the others are held nevertheless, and are returned with the error.
func reserveAll(ctx *perdure.OrchestrationContext, lines []Line) ([]Reservation, error) {
	ctx.SetCustomStatus(Reserving)
	var pending []*perdure.Future[Reservation]
	for _, l := range lines {
		pending = append(pending, reserveStock.Call(ctx, l, retried))
	}
	err := perdure.WhenAll(ctx, perdure.Awaitables(pending)...)
	var held []Reservation
	for _, f := range pending { // all have settled; of an order that is cancelled, Await through ctx would say that alone, and not what is held
		if r, failed := f.Await(perdure.WithoutCancel(ctx)); failed == nil {
			held = append(held, r)
		}
	}
	return held, err
}

func releaseAll(ctx *perdure.OrchestrationContext, held []Reservation) error {
	var pending []*perdure.Future[struct{}]
	for _, r := range held {
		pending = append(pending, releaseStock.Call(ctx, r, stubbornly))
	}
	return perdure.WhenAll(ctx, perdure.Awaitables(pending)...)
}

func shortOf(held []Reservation) []string {
	var short []string
	for _, r := range held {
		if r.Short > 0 {
			short = append(short, fmt.Sprintf("%d × %s", r.Short, r.SKU))
		}
	}
	return short
}

// charge charges the card once, however often it is tried: the key is the same each time. The processor and the clock race: a
// customer does not look at a wheel for ever. The loser is cancelled, so that a try that still runs is stopped; and it is waited for
// before anything is undone, so that no charge comes after its refund.
func charge(ctx *perdure.OrchestrationContext, o Order, p Payment) (receipt Receipt, paid bool, err error) {
	ctx.SetCustomStatus(Charging)
	payment := chargeCard.Call(ctx, p, retried, perdure.WithStartToClose(30*time.Second), perdure.WaitForCancellation())
	first, err := perdure.Select(ctx, payment, perdure.CreateTimer(ctx, o.payWithin()))
	if first == 0 {
		receipt, err = payment.Await(ctx)
	}
	return receipt, first == 0 && err == nil, err
}

func refund(ctx *perdure.OrchestrationContext, p Payment) error {
	_, err := refundCard.Call(ctx, p, stubbornly).Await(ctx)
	return err
}

func declined(err error) bool {
	failed, ok := errors.AsType[*perdure.ActivityError](err)
	return ok && failed.Type == CardDeclined
}

// waitUntilPacked lets the warehouse and the clock race. Neither costs anything while it lasts: no function runs.
func waitUntilPacked(ctx *perdure.OrchestrationContext, o Order) (bool, error) {
	ctx.SetCustomStatus(Packing)
	packed, late := perdure.WaitForExternalEvent[struct{}](ctx, EventPacked), perdure.CreateTimer(ctx, o.packWithin())
	first, err := perdure.Select(ctx, packed, late)
	return first == 0, err
}

// Register adds the orchestrations and their activities to a registry.
func Register(r *perdure.Registry, s *Shop) {
	perdure.AddOrchestration(r, "fulfil-order", FulfilOrder)
	perdure.AddOrchestration(r, "ship-order", ShipOrder)
	reserveStock.Register(r, s.ReserveStock)
	releaseStock.Register(r, s.ReleaseStock)
	chargeCard.Register(r, s.ChargeCard)
	refundCard.Register(r, s.RefundCard)
	bookCarrier.Register(r, s.BookCarrier)
	printLabel.Register(r, s.PrintLabel)
	trackParcel.Register(r, s.TrackParcel)
}
