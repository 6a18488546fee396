package orders

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

var (
	bookCarrier = perdure.DefineActivity[Parcel, Booking]("book-carrier")
	printLabel  = perdure.DefineActivity[Booking, Label]("print-label")
	// trackParcel is short and idempotent, so it runs inside the turn, without a queue.
	trackParcel = perdure.DefineActivity[Label, Position]("track-parcel", perdure.Inline())
)

// patiently retries without a limit, because a booked carrier cannot be cancelled.
var patiently = perdure.WithRetry(perdure.RetryPolicy{MaxInterval: 10 * time.Minute})

// Tracking starts with short intervals, which double up to longestPause. A parcel that has not arrived after all polls,
// about one month, is lost.
const (
	firstLook    = time.Second
	longestPause = 12 * time.Hour
	looks        = 75
)

// ShipOrder ships a parcel and tracks it until delivery. It is a sub-orchestration with its own history, so the polls
// do not grow the history of the order. It fails only before the parcel is shipped.
func ShipOrder(ctx *perdure.OrchestrationContext, p Parcel) (Shipment, error) {
	booking, err := bookCarrier.Call(ctx, p, retried).Await(ctx)
	if err != nil {
		return Shipment{}, fmt.Errorf("book a carrier: %w", err)
	}
	label, err := printLabel.Call(ctx, booking, patiently).Await(ctx)
	if err != nil {
		return Shipment{}, fmt.Errorf("print the label: %w", err)
	}
	delivered, err := track(ctx, label)
	return Shipment{Carrier: booking.Carrier, Tracking: label.Tracking, Lost: !delivered}, err
}

// track polls the position of a parcel until it is delivered or lost. The number of polls limits the history. A loop
// without a limit would have to continue as new.
func track(ctx *perdure.OrchestrationContext, l Label) (delivered bool, err error) {
	pause := firstLook
	for range looks {
		if err := perdure.Sleep(ctx, pause); err != nil {
			return false, err
		}
		at, err := trackParcel.Call(ctx, l, patiently).Await(ctx)
		if err != nil {
			return false, fmt.Errorf("track %s: %w", l.Tracking, err)
		}
		if at != InTransit {
			return at == Delivered, nil
		}
		pause = min(2*pause, longestPause)
	}
	return false, nil
}
