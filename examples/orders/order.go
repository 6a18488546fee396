package orders

// Order is what a customer bought.
type Order struct {
	ID       string  `json:"id"`
	Customer string  `json:"customer"`
	Lines    []Line  `json:"lines"`
	Card     Card    `json:"card"`
	ShipTo   Address `json:"shipTo"`
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

// Reservation is stock that is held for a line.
type Reservation struct {
	ID  string `json:"id"`
	SKU string `json:"sku"`
	// Short is how many pieces the warehouse does not have.
	Short int `json:"short,omitempty"`
}

// Payment asks for a card to be charged. The same Key is charged once, however often it is asked.
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

// Shipment is a parcel on its way.
type Shipment struct {
	Carrier  string `json:"carrier"`
	Tracking string `json:"tracking"`
}

// Fulfilment is how an order ended: shipped, or on back order because something was short.
type Fulfilment struct {
	Status   string    `json:"status"`
	Short    []string  `json:"short,omitempty"`
	Receipt  *Receipt  `json:"receipt,omitempty"`
	Shipment *Shipment `json:"shipment,omitempty"`
}

// The ways an order can end.
const (
	StatusShipped   = "shipped"
	StatusBackOrder = "backOrder"
)
