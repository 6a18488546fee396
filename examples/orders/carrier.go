package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// The countries where shipping goes wrong.
const (
	CountryNoCarrier = "AQ" // no carrier goes to Antarctica
	CountryLost      = "BM" // what is sent to Bermuda is lost on the way
)

// BookCarrier finds a carrier for a parcel.
func (s *Shop) BookCarrier(ctx context.Context, p Parcel) (Booking, error) {
	if err := s.answer(ctx); err != nil {
		return Booking{}, err
	}
	if p.To.Country == CountryNoCarrier {
		return Booking{}, perdure.NonRetryable(fmt.Errorf("no carrier goes to %s, %s", p.To.City, p.To.Country))
	}
	return Booking{ID: "bk-" + key(ctx), Carrier: "Northwind", To: p.To}, nil
}

// PrintLabel labels the parcel and hands it over.
func (s *Shop) PrintLabel(ctx context.Context, b Booking) (Label, error) {
	if err := s.answer(ctx); err != nil {
		return Label{}, err
	}
	return Label{Tracking: "NW-" + short(b.ID), To: b.To, LeftAt: time.Now()}, nil
}

// TrackParcel asks the carrier where the parcel is.
func (s *Shop) TrackParcel(ctx context.Context, l Label) (Position, error) {
	if err := s.answer(ctx); err != nil {
		return "", err
	}
	switch {
	case time.Since(l.LeftAt) < s.Transit:
		return InTransit, nil
	case l.To.Country == CountryLost:
		return Lost, nil
	default:
		return Delivered, nil
	}
}
