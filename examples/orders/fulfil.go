package orders

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// EventPacked is the external event that the warehouse raises when the parcel is packed. It has no data.
const EventPacked = "packed"

// Custom statuses of an order.
const (
	Reserving = "reserving"
	Charging  = "charging"
	Packing   = "waiting to be packed"
	Shipping  = "shipping"
	Undoing   = "undoing"
)

// References to the activities. A caller needs the name and types of an activity, not its implementation.
var (
	reserveStock = perdure.DefineActivity[Line, Reservation]("reserve-stock")
	releaseStock = perdure.DefineActivity[Reservation, struct{}]("release-stock")
	chargeCard   = perdure.DefineActivity[Payment, Receipt]("charge-card")
	refundCard   = perdure.DefineActivity[Payment, struct{}]("refund-card")
)

// retried retries calls of other systems, except a declined card.
var retried = perdure.WithRetry(perdure.RetryPolicy{
	MaxAttempts:            6,
	InitialInterval:        500 * time.Millisecond,
	NonRetryableErrorTypes: []string{CardDeclined},
})

// stubbornly retries compensations for about a day. After that, an operator has to release the money and stock.
var stubbornly = perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 36})

// FulfilOrder delivers an order. If it cannot deliver the order, it undoes all completed steps.
func FulfilOrder(ctx *perdure.OrchestrationContext, o Order) (Fulfilment, error) {
	f, err := fulfil(ctx, o)
	if e, ok := errors.AsType[*unfulfilledError](err); ok {
		f = e.fulfilment
		if err == error(e) { //nolint:errorlint // no compensation failed: no other error is joined
			err = nil
		}
	}
	return f, err // the cause, joined with the errors of failed compensations
}

// fulfil runs the steps of an order. If the order is not delivered, fulfil undoes the completed steps and returns an
// error.
func fulfil(ctx *perdure.OrchestrationContext, o Order) (f Fulfilment, err error) {
	held, err := reserveAll(ctx, o.Lines)
	defer perdure.Compensate(ctx, &err, undo("release the stock", func(ctx *perdure.OrchestrationContext) error {
		return releaseAll(ctx, held)
	}))
	if err != nil {
		return f, fmt.Errorf("reserve: %w", err)
	}
	if short := shortOf(held); len(short) > 0 {
		return f, &unfulfilledError{Fulfilment{Status: StatusBackOrder, Short: short}}
	}
	p := Payment{Key: ctx.ExecutionID(), Token: o.Card.Token, Cents: o.Total()}
	receipt, paid, err := charge(ctx, o, p)
	if !declined(err) { // after any other error the card may have been charged
		defer perdure.Compensate(ctx, &err, undo("refund the card", func(ctx *perdure.OrchestrationContext) error {
			return refund(ctx, p)
		}))
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
	ctx = perdure.WithoutCancel(ctx) // a shipped parcel cannot be recalled
	shipment, err := perdure.CallSubOrchestration(ctx, ShipOrder,
		Parcel{OrderID: o.ID, To: o.ShipTo, Reservations: held}).Await(ctx)
	if err != nil {
		return f, fmt.Errorf("ship: %w", err)
	}
	if shipment.Lost {
		held = nil // the stock was shipped, so only the card is refunded
		return f, &unfulfilledError{Fulfilment{Status: StatusLost, Receipt: &receipt, Shipment: &shipment}}
	}
	ctx.Logger().Info("order delivered", "order", o.ID, "tracking", shipment.Tracking)
	return Fulfilment{Status: StatusDelivered, Receipt: &receipt, Shipment: &shipment}, nil
}

// unfulfilledError reports an order that ended without delivery and without a failure. It triggers the compensations.
type unfulfilledError struct{ fulfilment Fulfilment }

// Error implements error.
func (e *unfulfilledError) Error() string { return "the order is " + e.fulfilment.Status }

// undo wraps a compensation: it sets the custom status and adds what to the error.
func undo(what string, how func(*perdure.OrchestrationContext) error) func(*perdure.OrchestrationContext) error {
	return func(ctx *perdure.OrchestrationContext) error {
		ctx.SetCustomStatus(Undoing)
		if err := how(ctx); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
}

// reserveAll reserves all lines concurrently. It returns the successful reservations even if a line fails or the order
// is cancelled.
func reserveAll(ctx *perdure.OrchestrationContext, lines []Line) ([]Reservation, error) {
	ctx.SetCustomStatus(Reserving)
	var pending []*perdure.Future[Reservation]
	for _, l := range lines {
		pending = append(pending, reserveStock.Call(ctx, l, retried))
	}
	err := perdure.WhenAll(ctx, perdure.Awaitables(pending)...)
	var held []Reservation
	for _, f := range pending { // all have ended; with a cancelled ctx, Await returns only the cancellation
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

// charge charges the card with a time limit. All attempts have the same key, so the card is charged once. Select
// cancels the payment if the time limit expires, and WaitForCancellation ensures that the refund does not overtake the
// charge.
func charge(ctx *perdure.OrchestrationContext, o Order, p Payment) (receipt Receipt, paid bool, err error) {
	ctx.SetCustomStatus(Charging)
	payment := chargeCard.Call(ctx, p, retried, perdure.WithStartToCloseTimeout(30*time.Second),
		perdure.WaitForCancellation())
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

// waitUntilPacked waits for the event from the warehouse or the time limit. No function runs while it waits.
func waitUntilPacked(ctx *perdure.OrchestrationContext, o Order) (bool, error) {
	ctx.SetCustomStatus(Packing)
	packed, late := perdure.WaitForExternalEvent[struct{}](ctx, EventPacked), perdure.CreateTimer(ctx, o.packWithin())
	first, err := perdure.Select(ctx, packed, late)
	return first == 0, err
}

// Register adds the orchestrations and the activities of s to a registry.
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
