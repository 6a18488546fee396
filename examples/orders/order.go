package orders

import (
	"cmp"
	"time"
)

// Order is what a customer bought.
type Order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Lines    []Line  `json:"lines"`
	Card     Card    `json:"card"`
	ShipTo   Address `json:"shipTo"`
	// PayWithinSeconds is how long the card processor may take, all tries together; 0 is two minutes. PackWithinSeconds is how long
	// the warehouse may take; 0 is a day. They are part of the input, and no settings of the program: an orchestration must decide
	// the same whenever it is replayed, and a setting may have changed by then.
	PayWithinSeconds  int `json:"payWithinSeconds,omitempty"`
	PackWithinSeconds int `json:"packWithinSeconds,omitempty"`
}

// Line is one article of an order.
type Line struct {
	SKU       string `json:"sku"`
	Quantity  int    `json:"quantity"`
	UnitCents int    `json:"unitCents"`
}

// Card is how the order is paid: a token of the card processor, never a card number.
type Card struct {
	Token string `json:"token"`
}

// Address is where the order goes.
type Address struct {
	Name    string `json:"name"`
	Street  string `json:"street"`
	City    string `json:"city"`
	Country string `json:"country"`
}

// Total is the price of all lines, in cents.
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

// Reservation is stock that is held for a line.
type Reservation struct {
	ID  string `json:"id"`
	SKU string `json:"sku"`
	// Short is how many pieces the warehouse does not have.
	Short int `json:"short,omitempty"`
}

// Payment is asked to be charged, or to be given back. The same Key is charged once and given back once, however often it is
// asked.
type Payment struct {
	Key   string `json:"key"`
	Token string `json:"token"`
	Cents int    `json:"cents"`
}

// Receipt is a charge that went through.
type Receipt struct {
	ChargeID string `json:"chargeId"`
	Cents    int    `json:"cents"`
}

// Parcel asks for an order to be sent.
type Parcel struct {
	OrderID      string        `json:"orderId"`
	To           Address       `json:"to"`
	Reservations []Reservation `json:"reservations"`
}

// Booking is a carrier that will come for a parcel.
type Booking struct {
	ID      string  `json:"id"`
	Carrier string  `json:"carrier"`
	To      Address `json:"to"`
}

// Label is what a parcel is known by once it has left.
type Label struct {
	Tracking string    `json:"tracking"`
	To       Address   `json:"to"`
	LeftAt   time.Time `json:"leftAt"`
}

// Position is where a parcel is.
type Position string

// The positions that a carrier reports.
const (
	InTransit Position = "inTransit"
	Delivered Position = "delivered"
	Lost      Position = "lost"
)

// Shipment is a parcel that has arrived, or is lost.
type Shipment struct {
	Carrier  string `json:"carrier"`
	Tracking string `json:"tracking"`
	Lost     bool   `json:"lost,omitempty"`
}

// Fulfilment is how an order ended. Unless it was delivered, the stock is released and the Receipt, if there is one, is of a
// charge that was given back.
type Fulfilment struct {
	Status   string    `json:"status"`
	Short    []string  `json:"short,omitempty"`
	Receipt  *Receipt  `json:"receipt,omitempty"`
	Shipment *Shipment `json:"shipment,omitempty"`
}

// The ways an order can end. One that fails ends with an error instead.
const (
	StatusDelivered = "delivered"
	StatusBackOrder = "backOrder" // something was short
	StatusUnpaid    = "unpaid"    // the card processor took too long
	StatusCancelled = "cancelled" // it was not packed in time
	StatusLost      = "lost"      // the carrier lost it
)
