package main

import "github.com/perdure/perdure/examples/orders"

// fate is what the demo does about an order, and how that must end.
type fate struct {
	// ends is a status of a fulfilment, or the type of an error.
	ends string
	// unpacked: the demo does not raise the event "packed", so the order waits until its time is over.
	unpacked bool
	// slow: the card processor never answers, so the charge is cancelled; the demo shows what became of it.
	slow bool
	// cancelled: the demo cancels the order as soon as its card is being charged; its undo waits until that is over.
	cancelled bool
	// delay puts the start off, as the API takes it.
	delay string
}

// fates are those of orders.json whose orders are not simply packed, sent and delivered.
var fates = map[string]fate{
	"order-20419": {ends: orders.StatusBackOrder},
	"order-20420": {ends: orders.CardDeclined},
	"order-20422": {ends: orders.StatusCancelled, unpacked: true},
	"order-20423": {ends: orders.StatusDelivered, delay: "2s"},
	"order-20424": {ends: orders.StatusLost},
	"order-20425": {ends: orders.StatusUnpaid, slow: true},
	"order-20426": {ends: statusCancelled, cancelled: true, slow: true},
}

// statusCancelled is how an order ends that was cancelled from outside.
const statusCancelled = "cancelled from outside"

func fateOf(orderID string) fate {
	if f, ok := fates[orderID]; ok {
		return f
	}
	return fate{ends: orders.StatusDelivered}
}
