package orders

import (
	"fmt"

	"github.com/perdure/perdure"
)

// The activities, by reference: callers need their names and types, not their implementations.
var (
	reserveStock = perdure.DefineActivity[Line, Reservation]("reserve-stock")
	releaseStock = perdure.DefineActivity[Reservation, struct{}]("release-stock")
	chargeCard   = perdure.DefineActivity[Payment, Receipt]("charge-card")
	shipParcel   = perdure.DefineActivity[Parcel, Shipment]("ship-parcel")
)

// FulfilOrder reserves, charges and ships. An order that is short of something is put on back order and charges nothing.
func FulfilOrder(ctx *perdure.OrchestrationContext, o Order) (Fulfilment, error) {
	held, err := reserveAll(ctx, o.Lines)
	if err != nil {
		return Fulfilment{}, err
	}
	if short := shortOf(held); len(short) > 0 {
		ctx.Logger().Info("order is short of stock", "order", o.ID, "short", short)
		return Fulfilment{Status: StatusBackOrder, Short: short}, releaseAll(ctx, held)
	}
	receipt, err := chargeCard.Call(ctx, Payment{Key: ctx.ExecutionID(), Token: o.Card.Token, Cents: o.Total()}).Await(ctx)
	if err != nil {
		return Fulfilment{}, fmt.Errorf("charge %d cents: %w", o.Total(), err)
	}
	shipment, err := shipParcel.Call(ctx, Parcel{OrderID: o.ID, To: o.ShipTo, Reservations: held}).Await(ctx)
	if err != nil {
		return Fulfilment{}, fmt.Errorf("ship: %w", err)
	}
	ctx.Logger().Info("order shipped", "order", o.ID, "tracking", shipment.Tracking)
	return Fulfilment{Status: StatusShipped, Receipt: &receipt, Shipment: &shipment}, nil
}

// reserveAll reserves every line at once and waits for all: an order of twenty lines takes as long as one of one.
func reserveAll(ctx *perdure.OrchestrationContext, lines []Line) ([]Reservation, error) {
	var pending []*perdure.Future[Reservation]
	for _, l := range lines {
		pending = append(pending, reserveStock.Call(ctx, l))
	}
	if err := perdure.WhenAll(ctx, perdure.Awaitables(pending)...); err != nil {
		return nil, fmt.Errorf("reserve: %w", err)
	}
	held := make([]Reservation, len(pending))
	for i, f := range pending {
		held[i], _ = f.Await(ctx) // WhenAll has seen the errors
	}
	return held, nil
}

func releaseAll(ctx *perdure.OrchestrationContext, held []Reservation) error {
	var pending []*perdure.Future[struct{}]
	for _, r := range held {
		pending = append(pending, releaseStock.Call(ctx, r))
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

// Register adds the orchestration and its activities to a registry.
func Register(r *perdure.Registry, s *Shop) {
	perdure.AddOrchestration(r, "fulfil-order", FulfilOrder)
	reserveStock.Register(r, s.ReserveStock)
	releaseStock.Register(r, s.ReleaseStock)
	chargeCard.Register(r, s.ChargeCard)
	shipParcel.Register(r, s.ShipParcel)
}
