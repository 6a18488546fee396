package orders

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/perdure/perdure"
)

// Shop stands for the systems a real shop would call. It answers after a moment, as they do. It keeps nothing: each function
// has a Shop of its own, and forgets it between two calls.
type Shop struct {
	// Stock is how many pieces of an article there are; articles that are not listed never run out.
	Stock map[string]int
	// Latency is how long each system takes to answer.
	Latency time.Duration
	// Transit is how long a parcel is under way.
	Transit time.Duration
}

// NewShop has everything but the grinder that everybody wants, and a carrier that is faster than any other.
func NewShop() *Shop {
	return &Shop{Stock: map[string]int{"grinder-burr-steel": 1}, Latency: 150 * time.Millisecond, Transit: 2 * time.Second}
}

// The cards that try how an order copes, as card processors have them. Any other is good.
const (
	TokenDeclined = "tok_declined"  // is declined
	TokenFlaky    = "tok_flaky"     // is charged at the third attempt, since the network is down before
	TokenDead     = "tok_dead"      // is never reached
	TokenSilent   = "tok_silent"    // is reached, and never gets an answer
	TokenSlow     = "tok_slow"      // is charged in two seconds, and cannot be called back meanwhile
	TokenNoRefund = "tok_no_refund" // is charged, and never given back
)

const slowCharge = 2 * time.Second

// CardDeclined is the type of the error of a declined card: policies and failures name it so.
const CardDeclined = "CardDeclined"

// DeclinedError is the no of a card processor.
type DeclinedError struct{ Token string }

// Error implements error.
func (e *DeclinedError) Error() string { return fmt.Sprintf("card %s was declined", e.Token) }

// ErrorType names the error where it travels. Histories keep the name, so it must not change with that of the Go type.
func (e *DeclinedError) ErrorType() string { return CardDeclined }

// ReserveStock holds the pieces of a line.
func (s *Shop) ReserveStock(ctx context.Context, l Line) (Reservation, error) {
	if l.Quantity <= 0 {
		return Reservation{}, perdure.NonRetryable(fmt.Errorf("line %s: quantity must be positive, not %d", l.SKU, l.Quantity))
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
		return Receipt{}, fmt.Errorf("attempt %d: the card processor does not answer", attempt)
	default:
		return Receipt{ChargeID: "ch-" + short(p.Key), Cents: p.Cents}, nil
	}
}

// RefundCard gives back what was charged for a Key; nothing if nothing was.
func (s *Shop) RefundCard(ctx context.Context, p Payment) (struct{}, error) {
	if err := s.answer(ctx); err != nil {
		return struct{}{}, err
	}
	if p.Token == TokenNoRefund {
		return struct{}{}, perdure.NonRetryable(errors.New("the account is closed"))
	}
	return struct{}{}, nil
}

// answer waits as long as the system takes, or until the answer is not wanted any more.
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
