package orders

import (
	"cmp"
	"time"
)

// Order is an order of a customer.
type Order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Lines    []Line  `json:"lines"`
	Card     Card    `json:"card"`
	ShipTo   Address `json:"shipTo"`
	// PayWithinSeconds limits all attempts to charge the card together, in seconds. The default is 120. It is part of
	// the input and not a setting of the program, because a setting could change before a replay.
	PayWithinSeconds int `json:"payWithinSeconds,omitempty"`
	// PackWithinSeconds limits the time that the warehouse has to pack the parcel, in seconds. The default is 86400.
	PackWithinSeconds int `json:"packWithinSeconds,omitempty"`
}

// Line is one item of an order.
type Line struct {
	SKU       string `json:"sku"`
	Quantity  int    `json:"quantity"`
	UnitCents int    `json:"unitCents"`
}

// Card identifies a payment card by a token of the card processor.
type Card struct {
	Token string `json:"token"`
}

// Address is the shipping address of an order.
type Address struct {
	Name    string `json:"name"`
	Street  string `json:"street"`
	City    string `json:"city"`
	Country string `json:"country"`
}

// Total returns the price of all lines in cents.
func (o Order) Total() int {
	total := 0
	for _, l := range o.Lines {
		total += l.Quantity * l.UnitCents
	}
	return total
}

func (o Order) payWithin() time.Duration {
	return cmp.Or(time.Duration(o.PayWithinSeconds)*time.Second, 2*time.Minute)
}

func (o Order) packWithin() time.Duration {
	return cmp.Or(time.Duration(o.PackWithinSeconds)*time.Second, 24*time.Hour)
}

// Reservation is the stock that is reserved for a line.
type Reservation struct {
	ID  string `json:"id"`
	SKU string `json:"sku"`
	// Short is the number of missing pieces.
	Short int `json:"short,omitempty"`
}

// Payment is a request to charge or refund a card. Key is the idempotency key: a payment is charged and refunded at
// most once per key.
type Payment struct {
	Key   string `json:"key"`
	Token string `json:"token"`
	Cents int    `json:"cents"`
}

// Receipt is the result of a successful charge.
type Receipt struct {
	ChargeID string `json:"chargeId"`
	Cents    int    `json:"cents"`
}

// Parcel is a request to ship an order.
type Parcel struct {
	OrderID      string        `json:"orderId"`
	To           Address       `json:"to"`
	Reservations []Reservation `json:"reservations"`
}

// Booking is a carrier that is booked for a parcel.
type Booking struct {
	ID      string  `json:"id"`
	Carrier string  `json:"carrier"`
	To      Address `json:"to"`
}

// Label is the shipping label of a parcel with its tracking number.
type Label struct {
	Tracking string    `json:"tracking"`
	To       Address   `json:"to"`
	LeftAt   time.Time `json:"leftAt"`
}

// Position is the delivery state of a parcel.
type Position string

// Positions that a carrier reports.
const (
	InTransit Position = "inTransit"
	Delivered Position = "delivered"
	Lost      Position = "lost"
)

// Shipment is a delivered or lost parcel.
type Shipment struct {
	Carrier  string `json:"carrier"`
	Tracking string `json:"tracking"`
	Lost     bool   `json:"lost,omitempty"`
}

// Fulfilment is the outcome of an order. If the order was not delivered, the stock is released and the charge of
// Receipt is refunded.
type Fulfilment struct {
	Status   string    `json:"status"`
	Short    []string  `json:"short,omitempty"`
	Receipt  *Receipt  `json:"receipt,omitempty"`
	Shipment *Shipment `json:"shipment,omitempty"`
}

// Statuses of a Fulfilment. A failed order has an error instead.
const (
	StatusDelivered = "delivered"
	StatusBackOrder = "backOrder" // stock is missing
	StatusUnpaid    = "unpaid"    // the card processor took too long
	StatusCancelled = "cancelled" // not packed in time
	StatusLost      = "lost"      // lost by the carrier
)
