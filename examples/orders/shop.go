package orders

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/perdure/perdure"
)

// Shop stands for the systems a real shop would call. It answers after a moment, as they do.
type Shop struct {
	// Stock is how many pieces of an article there are; articles that are not listed never run out.
	Stock map[string]int
	// Latency is how long each system takes to answer.
	Latency time.Duration
}

// NewShop has everything but the grinder that everybody wants.
func NewShop() *Shop {
	return &Shop{Stock: map[string]int{"grinder-burr-steel": 1}, Latency: 150 * time.Millisecond}
}

// ReserveStock holds the pieces of a line.
func (s *Shop) ReserveStock(ctx context.Context, l Line) (Reservation, error) {
	if l.Quantity <= 0 {
		return Reservation{}, fmt.Errorf("line %s: quantity must be positive, not %d", l.SKU, l.Quantity)
	}
	if err := s.answer(ctx); err != nil {
		return Reservation{}, err
	}
	r := Reservation{ID: "res-" + key(ctx), SKU: l.SKU}
	if left, limited := s.Stock[l.SKU]; limited && l.Quantity > left {
		r.Short = l.Quantity - left
	}
	return r, nil
}

// ReleaseStock gives back what is held.
func (s *Shop) ReleaseStock(ctx context.Context, _ Reservation) (struct{}, error) {
	return struct{}{}, s.answer(ctx)
}

// ChargeCard charges a card, once for each Key.
func (s *Shop) ChargeCard(ctx context.Context, p Payment) (Receipt, error) {
	if err := s.answer(ctx); err != nil {
		return Receipt{}, err
	}
	return Receipt{ChargeID: "ch-" + short(p.Key), Cents: p.Cents}, nil
}

// ShipParcel hands a parcel to the carrier.
func (s *Shop) ShipParcel(ctx context.Context, p Parcel) (Shipment, error) {
	if err := s.answer(ctx); err != nil {
		return Shipment{}, err
	}
	return Shipment{Carrier: "Northwind", Tracking: "NW-" + short(p.OrderID)}, nil
}

// answer waits as long as the system takes, or until nobody wants the answer any more.
func (s *Shop) answer(ctx context.Context) error {
	t := time.NewTimer(s.Latency)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// key names the activity that runs: a repeat of it has the same name, so a system that is asked twice can tell.
func key(ctx context.Context) string {
	info := perdure.ActivityInfoFrom(ctx)
	return short(fmt.Sprintf("%s/%d", info.ExecutionID, info.ActivityID))
}

func short(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // a hash never fails
	return fmt.Sprintf("%08X", h.Sum32())
}
