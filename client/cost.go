package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/reckon"
)

// Cost is what an instance has cost so far, by its history and AWS's list prices: reckoned, since nobody counts it (docs/operate/cost.md). Its JSON is that of the
// HTTP API.
//
// It is that of an instance with nobody beside it, whose turns are warm: with others beside it the same costs less, since batches are shared, and
// cold turns cost more. Not in it are what activities do and for how long (and the looks whether they are cancelled meanwhile), its children, which have a
// cost of their own, what clients ask, logs, and what large payloads take by lying in their bucket: that they are written, copied and read is in it.
type Cost struct {
	InstanceID string `json:"instanceId"`
	// Executions, Turns and Activities are what it has had; those of executions that a retention has deleted are not in it.
	Executions int64 `json:"executions"`
	Turns      int64 `json:"turns"`
	Activities int64 `json:"activities"`

	Dollars float64 `json:"dollars"`
	// Lines are what the dollars are paid for, in the order of their names.
	Lines []CostLine `json:"lines"`
	// Region and AsOf say whose prices these are, and of which day (2006-01-02).
	Region string `json:"region"`
	AsOf   string `json:"asOf"`
}

// CostLine is how much of something AWS bills, and what that costs.
type CostLine struct {
	Item     string  `json:"item"` // such as dynamodb.write
	What     string  `json:"what"`
	Quantity float64 `json:"quantity"`
	Dollars  float64 `json:"dollars"`
}

// CostOf reckons what an instance has cost. It reads the histories of all its executions, page by page, strongly consistent: a read unit for each 4 KB,
// which for a million events is cents and a minute. It returns ErrNotFound when there is no such instance, and the errors of Executions and History.
func CostOf(ctx context.Context, c *Client, instanceID string) (Cost, error) {
	var executions []Execution // the current one first
	for x, err := range c.Executions(ctx, instanceID) {
		if err != nil {
			return Cost{}, err
		}
		executions = append(executions, x)
	}
	var r reckon.Reckoning
	for _, x := range slices.Backward(executions) {
		for e, err := range c.hub.ReadHistory(ctx, instanceID, x.ExecutionID, 0) {
			if err != nil {
				return Cost{}, fmt.Errorf("client: cost: instance %q: execution %s: %w", instanceID, x.ExecutionID, err)
			}
			r.Add(&e)
		}
	}
	usage, list := r.Usage(), pricing.Current()
	cost := Cost{
		InstanceID: instanceID, Executions: int64(len(executions)), Turns: r.Turns, Activities: r.Activities,
		Dollars: usage.Dollars(list), Lines: []CostLine{}, Region: list.Region, AsOf: list.AsOf,
	}
	for _, i := range usage.Items() {
		cost.Lines = append(cost.Lines, CostLine{Item: string(i), What: list.Prices[i].What, Quantity: usage[i], Dollars: list.Of(i, usage[i])})
	}
	return cost, nil
}
