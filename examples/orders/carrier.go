package orders

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
)

// Countries to which shipping fails.
const (
	CountryNoCarrier = "AQ" // no carrier delivers to Antarctica
	CountryLost      = "BM" // parcels to Bermuda are lost
)

// BookCarrier books a carrier for a parcel.
func (s *Shop) BookCarrier(ctx context.Context, p Parcel) (Booking, error) {
	if err := s.answer(ctx); err != nil {
		return Booking{}, err
	}
	if p.To.Country == CountryNoCarrier {
		return Booking{}, perdure.NonRetryable(fmt.Errorf("no carrier delivers to %s, %s", p.To.City, p.To.Country))
	}
	return Booking{ID: "bk-" + key(ctx), Carrier: "Northwind", To: p.To}, nil
}

// PrintLabel prints the shipping label and transfers the parcel to the carrier.
func (s *Shop) PrintLabel(ctx context.Context, b Booking) (Label, error) {
	if err := s.answer(ctx); err != nil {
		return Label{}, err
	}
	return Label{Tracking: "NW-" + short(b.ID), To: b.To, LeftAt: time.Now()}, nil
}

// TrackParcel returns the position of a parcel.
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
