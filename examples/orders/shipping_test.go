package orders_test

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/examples/orders"
)

func TestShipOrder_notDeliveredForAMonth_isLost(t *testing.T) {
	t.Parallel()
	e := fulfil(t, &orders.Shop{Transit: 365 * 24 * time.Hour}, order(nil), 0)
	if e.fulfilment.Status != orders.StatusLost || !e.fulfilment.Shipment.Lost {
		t.Errorf("%+v, %+v", e.fulfilment, e.Failure)
	}
	if days := e.took().Hours() / 24; days < 28 || days > 35 {
		t.Errorf("lost after %.1f days, want 28 to 35", days)
	}
	if n := strings.Count(strings.Join(e.called, " "), "track-parcel"); n != 75 {
		t.Errorf("%d polls, want 75", n)
	}
}

func TestShipOrder_quickDelivery_isNoticedAfterSeconds(t *testing.T) {
	t.Parallel()
	e := fulfil(t, &orders.Shop{Transit: 10 * time.Second}, order(nil), 0)
	if e.fulfilment.Status != orders.StatusDelivered || e.took() != 15*time.Second {
		t.Errorf("%s after %v, want delivered after polls at 1, 3, 7 and 15 s", e.fulfilment.Status, e.took())
	}
}
