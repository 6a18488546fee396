package selftest

import (
	"testing"

	"github.com/perdure/perdure/internal/pricing"
)

// The announced limit covers the limit of the usage, by the price list, in any region.
func TestDollarLimit_usageLimit_costsLess(t *testing.T) {
	t.Parallel()
	list := pricing.Current()
	for i := range usageLimit {
		if !list.Known(i) {
			t.Errorf("the price list has no %s", i)
		}
	}
	cost := regionFactor * (usageLimit.Dollars(list) + metricDollars + unitDollars)
	if cost > dollarLimit || cost < dollarLimit/2 {
		t.Errorf("the usage costs up to $%.3f, the announced limit is $%.2f", cost, dollarLimit)
	}
}

// The alarms of the stack are those of the limit.
func TestUsageLimit_template_hasFewerAlarms(t *testing.T) {
	t.Parallel()
	template, err := disposable()
	if err != nil {
		t.Fatal(err)
	}
	const most = 35
	if n := template.ResourceTypes()["AWS::CloudWatch::Alarm"]; n == 0 || n > most {
		t.Errorf("the stack has %d alarms", n)
	}
}
