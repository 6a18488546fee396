package orders_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/examples/orders"
)

// A parcel that nobody has seen for a month is given up, however long it really takes: the loop ends.
func TestAParcelThatNeverArrivesIsLost(t *testing.T) {
	t.Parallel()
	e := fulfil(t, &orders.Shop{Transit: 365 * 24 * time.Hour}, order(nil), 0)
	if e.fulfilment.Status != orders.StatusLost || !e.fulfilment.Shipment.Lost {
		t.Errorf("%+v, %+v", e.fulfilment, e.Failure)
	}
	if days := e.took().Hours() / 24; days < 28 || days > 35 {
		t.Errorf("given up after %.1f days", days)
	}
	if n := strings.Count(strings.Join(e.asked, " "), "track-parcel"); n != 75 {
		t.Errorf("%d looks", n)
	}
}

// Looks are frequent at first: a parcel that is quick is not waited for until the next day.
func TestAQuickParcelIsNoticedSoon(t *testing.T) {
	t.Parallel()
	e := fulfil(t, &orders.Shop{Transit: 10 * time.Second}, order(nil), 0)
	if e.fulfilment.Status != orders.StatusDelivered || e.took() != 15*time.Second {
		t.Errorf("%s after %v, want the look after 1, 2, 4 and 8 s", e.fulfilment.Status, e.took())
	}
}
