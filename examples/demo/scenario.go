package main

import "github.com/perdure/perdure/examples/orders"

// scenario is the scenario of an order and its expected outcome.
type scenario struct {
	// ends is the expected status of the fulfilment or the expected error type.
	ends string
	// unpacked orders do not receive the event "packed", so their time limit expires.
	unpacked bool
	// slow orders have a charge that is cancelled. The demo shows the cancellation.
	slow bool
	// cancelled orders are cancelled during the charge. The refund waits until the charge has ended.
	cancelled bool
	// delay is the start delay, in the format of the API.
	delay string
}

// scenarios has the scenarios of the orders in orders.json. All other orders are packed, shipped and delivered.
var scenarios = map[string]scenario{
	"order-20419": {ends: orders.StatusBackOrder},
	"order-20420": {ends: orders.CardDeclined},
	"order-20422": {ends: orders.StatusCancelled, unpacked: true},
	"order-20423": {ends: orders.StatusDelivered, delay: "2s"},
	"order-20424": {ends: orders.StatusLost},
	"order-20425": {ends: orders.StatusUnpaid, slow: true},
	"order-20426": {ends: statusCancelled, cancelled: true, slow: true},
}

// statusCancelled is the outcome of an order that a client cancelled.
const statusCancelled = "cancelled by a client"

func scenarioOf(orderID string) scenario {
	if f, ok := scenarios[orderID]; ok {
		return f
	}
	return scenario{ends: orders.StatusDelivered}
}
