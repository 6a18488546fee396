package cost

import (
	"github.com/perdure/perdure/internal/pricing"
)

// Bill is the cost of a million units of a shape, in dollars. The unit is in Of, for example activities.
type Bill struct {
	Name  string  `json:"name"`
	Of    string  `json:"of"`
	Asked float64 `json:"asked,omitempty"` // the target
	Total float64 `json:"total"`
	// Reckoned is the total that the estimates from the histories give.
	Reckoned float64 `json:"reckoned"`

	Writes    float64 `json:"writes"`    // of table items
	Reads     float64 `json:"reads"`     // of table items
	Sends     float64 `json:"sends"`     // SQS requests of the functions
	Receives  float64 `json:"receives"`  // receives by mappings
	Deletes   float64 `json:"deletes"`   // deletes by mappings
	Requests  float64 `json:"requests"`  // invocations
	Durations float64 `json:"durations"` // GB-seconds
	Schedules float64 `json:"schedules"`

	// The quantities for one unit.
	WriteUnits  float64 `json:"writeUnits"`
	ReadUnits   float64 `json:"readUnits"`
	SQSRequests float64 `json:"sqsRequests"`
	Invocations float64 `json:"invocations"`
	GBSeconds   float64 `json:"gbSeconds"`
	Stored      float64 `json:"storedBytes"`
}

// Bill calculates the bill of a measured shape from a price list.
func (m *Measured) Bill(l *pricing.List) Bill {
	own := m.Calls.Usage()
	lambda := pricing.Usage{pricing.Invocations: own[pricing.Invocations]}
	for name, f := range m.Functions {
		lambda[pricing.Invocations] += float64(f.Invocations)
		lambda[pricing.GBSeconds] += f.Duration.Seconds() * Memory[name]
	}
	// each fired schedule sends a message
	fired := pricing.Usage{pricing.ScheduleInvocations: m.Fired, pricing.StandardRequests: m.Fired}
	each := 1 / float64(m.Instances*m.Shape.Count)
	dollars := func(u pricing.Usage, items ...pricing.Item) (sum float64) {
		for _, i := range items {
			sum += l.Of(i, u[i]) * each * million
		}
		return sum
	}
	queues := []pricing.Item{pricing.StandardRequests, pricing.FIFORequests}
	b := Bill{
		Name: m.Shape.Name, Of: m.Shape.Of, Asked: m.Shape.Asked,
		Writes: dollars(own, pricing.WriteUnits), Reads: dollars(own, pricing.ReadUnits),
		Sends:    dollars(own, queues...),
		Receives: dollars(m.Received, queues...), Deletes: dollars(m.Deleted, queues...),
		Requests: dollars(lambda, pricing.Invocations), Durations: dollars(lambda, pricing.GBSeconds),
		Schedules:  dollars(fired, pricing.ScheduleInvocations, pricing.StandardRequests),
		WriteUnits: own[pricing.WriteUnits] * each, ReadUnits: own[pricing.ReadUnits] * each,
		Invocations: lambda[pricing.Invocations] * each, GBSeconds: lambda[pricing.GBSeconds] * each,
		Stored: m.Stored * each,
	}
	for _, u := range []pricing.Usage{own, m.Received, m.Deleted, fired} {
		b.SQSRequests += (u[pricing.StandardRequests] + u[pricing.FIFORequests]) * each
	}
	b.Reckoned = m.Reckoned * each * million
	b.Total = b.Writes + b.Reads + b.Sends + b.Receives + b.Deletes + b.Requests + b.Durations + b.Schedules
	return b
}

const million = 1e6
