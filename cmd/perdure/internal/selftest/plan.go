package selftest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/internal/pricing"
)

// dollarLimit is the announced limit of the cost. Regions cost up to twice as much as us-east-1, whose prices the tool
// has.
const dollarLimit = 0.50

// regionFactor is the ratio of the prices of the most expensive region and of us-east-1.
const regionFactor = 2

const (
	// metricDollars is the price of 46 metrics, prorated to two hours of a month. The price list has no metrics.
	metricDollars = 46 * 0.30 * hoursBilled / hoursOfMonth
	// unitDollars is the price of the provisioned write and read units of a table and its index.
	unitDollars  = (0.00065*(probes.TableUnits+probes.IndexUnits) + 0.00013*2) * hoursBilled
	hoursBilled  = 2
	hoursOfMonth = 730
)

// usageLimit is the limit of the usage of a run.
var usageLimit = pricing.Usage{
	pricing.Invocations: 10_000, pricing.GBSeconds: 2_000,
	pricing.WriteUnits: 100_000, pricing.ReadUnits: 200_000,
	pricing.StandardRequests: 50_000, pricing.FIFORequests: 50_000,
	pricing.ObjectWrites: 1_500, pricing.ObjectReads: 1_500, pricing.HTTPRequests: 1_000,
	pricing.ScheduleInvocations: 100, pricing.LogBytes: 20e6, pricing.AlarmMetrics: 37.0 * hoursBilled / hoursOfMonth,
}

// plan is what a run creates and removes.
type plan struct {
	run runID
	// leftovers are removed. Runs in young may be in progress.
	leftovers, young []runID
}

func (r *runner) plan(ctx context.Context, run runID) (*plan, error) {
	p := &plan{run: run}
	found, err := r.found(ctx)
	if err != nil {
		return nil, err
	}
	for _, other := range found {
		if r.isLeftover(other) {
			p.leftovers = append(p.leftovers, other)
		} else {
			p.young = append(p.young, other)
		}
	}
	return p, nil
}

// text returns the plan for the user.
func (p *plan) text(r *runner) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The self-test creates in account %s, region %s:\n", r.account, r.region)
	counts := r.template.ResourceTypes()
	total := 0
	var main []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		total += counts[kind]
		if _, name, ok := strings.Cut(kind, "AWS::"); ok && slices.Contains(mainTypes, kind) {
			main = append(main, fmt.Sprintf("%d %s", counts[kind], name))
		}
	}
	fmt.Fprintf(&b, "  stack   %s with %d resources: %s, …\n", p.run.stack(), total, strings.Join(main, ", "))
	fmt.Fprintf(&b, "  bucket  %s%s with the code of the functions\n", bucketPrefix(r.account, r.region), p.run)
	fmt.Fprintf(&b, "It removes everything at the end. It costs less than $%.2f and takes less than %.0f minutes.\n",
		dollarLimit, runLimit.Minutes())
	for _, old := range p.leftovers {
		fmt.Fprintf(&b, "It first removes run %s, which started at %s and is not complete.\n", old,
			old.startedAt().Format(time.RFC3339))
	}
	for _, other := range p.young {
		fmt.Fprintf(&b, "It does not change run %s, which started at %s and may still run.\n", other,
			other.startedAt().Format(time.RFC3339))
	}
	return b.String()
}

// mainTypes are the resources that the plan counts.
var mainTypes = []string{
	"AWS::CloudWatch::Alarm", "AWS::DynamoDB::Table", "AWS::IAM::Role", "AWS::Lambda::Function", "AWS::Logs::LogGroup",
	"AWS::S3::Bucket", typeQueue, "AWS::Scheduler::ScheduleGroup",
}
