package orders

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/perdure/perdure"
)

// Shop simulates the external systems of a shop. Each call takes Latency. A Shop is stateless, because every function
// has its own Shop.
type Shop struct {
	// Stock is the number of pieces by SKU. A SKU that is not listed is always available.
	Stock map[string]int
	// Latency is the response time of each system.
	Latency time.Duration
	// Transit is the time from shipping to delivery.
	Transit time.Duration
}

// NewShop returns a shop with one grinder-burr-steel, unlimited stock of everything else, a latency of 150 ms and a
// transit time of 2 s.
func NewShop() *Shop {
	return &Shop{
		Stock: map[string]int{"grinder-burr-steel": 1}, Latency: 150 * time.Millisecond, Transit: 2 * time.Second,
	}
}

// Test cards. Any other card is charged successfully.
const (
	TokenDeclined = "tok_declined"  // declined
	TokenFlaky    = "tok_flaky"     // charged in the third attempt, after two network errors
	TokenDead     = "tok_dead"      // a network error in every attempt
	TokenSilent   = "tok_silent"    // no response
	TokenSlow     = "tok_slow"      // charged after two seconds, ignores a cancellation
	TokenNoRefund = "tok_no_refund" // charged, but the refund fails
)

const slowCharge = 2 * time.Second

// CardDeclined is the error type of a declined card, for retry policies and failures.
const CardDeclined = "CardDeclined"

// DeclinedError reports that the card processor declined a card.
type DeclinedError struct{ Token string }

// Error implements error.
func (e *DeclinedError) Error() string { return fmt.Sprintf("card %s was declined", e.Token) }

// ErrorType returns the error type that histories store. It must not change when the Go type is renamed.
func (e *DeclinedError) ErrorType() string { return CardDeclined }

// ReserveStock reserves the stock for a line.
func (s *Shop) ReserveStock(ctx context.Context, l Line) (Reservation, error) {
	if l.Quantity <= 0 {
		err := fmt.Errorf("line %s: invalid quantity %d: must be positive", l.SKU, l.Quantity)
		return Reservation{}, perdure.NonRetryable(err)
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

// ReleaseStock releases a reservation.
func (s *Shop) ReleaseStock(ctx context.Context, _ Reservation) (struct{}, error) {
	return struct{}{}, s.answer(ctx)
}

// ChargeCard charges a card once per key.
func (s *Shop) ChargeCard(ctx context.Context, p Payment) (Receipt, error) {
	if err := s.answer(ctx); err != nil {
		return Receipt{}, err
	}
	attempt := perdure.ActivityInfoFrom(ctx).Attempt
	switch {
	case p.Token == TokenDeclined:
		return Receipt{}, &DeclinedError{Token: p.Token}
	case p.Token == TokenSilent:
		<-ctx.Done()
		return Receipt{}, context.Cause(ctx)
	case p.Token == TokenSlow:
		time.Sleep(slowCharge)
		return Receipt{ChargeID: "ch-" + short(p.Key), Cents: p.Cents}, nil
	case p.Token == TokenDead, p.Token == TokenFlaky && attempt < 3:
		return Receipt{}, fmt.Errorf("attempt %d: no response from the card processor", attempt)
	default:
		return Receipt{ChargeID: "ch-" + short(p.Key), Cents: p.Cents}, nil
	}
}

// RefundCard refunds the charge of a key. It does nothing if there is no charge.
func (s *Shop) RefundCard(ctx context.Context, p Payment) (struct{}, error) {
	if err := s.answer(ctx); err != nil {
		return struct{}{}, err
	}
	if p.Token == TokenNoRefund {
		return struct{}{}, perdure.NonRetryable(errors.New("the account is closed"))
	}
	return struct{}{}, nil
}

// answer waits for the response time of a system, or until ctx is cancelled.
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

// key returns an idempotency key for the running activity. All attempts of an activity have the same key.
func key(ctx context.Context) string {
	info := perdure.ActivityInfoFrom(ctx)
	return short(fmt.Sprintf("%s/%d", info.ExecutionID, info.ActivityID))
}

func short(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // a hash never fails
	return fmt.Sprintf("%08X", h.Sum32())
}
