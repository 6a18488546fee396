package pricing_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/pricing"
)

func TestCurrent_hasAllItemsDateAndSources(t *testing.T) {
	t.Parallel()
	l := pricing.Current()
	if _, err := time.Parse(time.DateOnly, l.AsOf); err != nil || l.Region != "us-east-1" {
		t.Errorf("list of region %q, as of %q: %v", l.Region, l.AsOf, err)
	}
	all := []pricing.Item{
		pricing.WriteUnits, pricing.ReadUnits, pricing.StandardRequests, pricing.FIFORequests, pricing.Invocations,
		pricing.GBSeconds,
		pricing.ScheduleInvocations, pricing.HTTPRequests, pricing.ObjectWrites, pricing.ObjectReads, pricing.LogBytes,
		pricing.StoredGigabytes, pricing.BackupGigabytes, pricing.ObjectGigabytes, pricing.AlarmMetrics,
	}
	if len(all) != len(l.Prices) {
		t.Errorf("%d items in the list, %d items in the package", len(l.Prices), len(all))
	}
	for _, i := range all {
		if p, ok := l.Prices[i]; !ok || p.Dollars <= 0 || p.Per <= 0 || p.What == "" || p.Source == "" {
			t.Errorf("%s: %+v", i, p)
		}
	}
}

func TestUsageDollars_addsPricesOfKnownItems(t *testing.T) {
	t.Parallel()
	u := pricing.Usage{pricing.WriteUnits: 2_000_000}
	u.Add(pricing.Usage{pricing.WriteUnits: 500_000, pricing.GBSeconds: 150_000}, 2)
	if got, want := u.Dollars(pricing.Current()), 3*0.625+0.3*13.3334; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%v dollars, want %v", got, want)
	}
	if got := (pricing.Usage{"no.such": 7}).Dollars(pricing.Current()); got != 0 || pricing.Current().Known("no.such") {
		t.Errorf("an item without a price costs %v", got)
	}
}
