package orders

import (
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

var (
	bookCarrier = perdure.DefineActivity[Parcel, Booking]("book-carrier")
	printLabel  = perdure.DefineActivity[Booking, Label]("print-label")
	// Where a parcel is, is a short question that does no harm when it is asked twice: it is asked in the turn, without a queue.
	trackParcel = perdure.DefineActivity[Label, Position]("track-parcel", perdure.Inline())
)

// Once a carrier is booked there is no way back, so what follows is tried until it succeeds.
var patiently = perdure.WithRetry(perdure.RetryPolicy{MaxInterval: 10 * time.Minute})

// A parcel is looked at soon after it left, and then less and less often. One that has not arrived after all the looks, which
// is about a month, is lost.
const (
	firstLook    = time.Second
	longestPause = 12 * time.Hour
	looks        = 75
)

// ShipOrder sends a parcel and follows it to the door. It is an orchestration of its own, with a history of its own: the order
// need not know how often the carrier was asked. It fails only while the parcel has not left.
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

// track asks where the parcel is until it has arrived. The number of looks is bounded, and so is the history: a loop without
// an end would continue as new from time to time.
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
