package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure/internal/costestimate"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/pricing"
)

// CostEstimate is an estimate of the cost of an instance so far, based on its history and AWS list prices. Its JSON is
// the same as in the HTTP API.
//
// The estimate assumes that the instance runs alone and that all its turns are warm. Shared batches reduce the cost,
// and cold turns increase it. The estimate excludes the run time of activities, child instances, client calls, logs and
// the storage of large payloads. It includes writing, copying and reading large payloads. See docs/operate/cost.md.
type CostEstimate struct {
	InstanceID string `json:"instanceId"`
	// Executions, Turns and Activities are the numbers of the instance's executions, turns and activities so far. They
	// exclude executions that retention has deleted.
	Executions int64 `json:"executions"`
	Turns      int64 `json:"turns"`
	Activities int64 `json:"activities"`

	// Dollars is the total in US dollars.
	Dollars float64 `json:"dollars"`
	// Lines are the parts of the total, sorted by Item.
	Lines []CostLine `json:"lines"`
	// Region is the AWS region of the prices, and AsOf is the date of the prices as YYYY-MM-DD.
	Region string `json:"region"`
	AsOf   string `json:"asOf"`
}

// CostLine is the quantity of one billed item and its price in US dollars.
type CostLine struct {
	// Item identifies the billed item, such as dynamodb.write. Description describes it.
	Item        string  `json:"item"`
	Description string  `json:"what"`
	Quantity    float64 `json:"quantity"`
	Dollars     float64 `json:"dollars"`
}

// EstimateCost estimates the cost of an instance. It reads the histories of all its executions with strongly consistent
// reads, at one DynamoDB read unit per 4 KB. A million events take about a minute and cost a few cents.
//
// EstimateCost returns provider.ErrNotFound if the instance does not exist, and provider.ErrCorrupt if a history cannot
// be read.
func (c *Client) EstimateCost(ctx context.Context, instanceID string) (CostEstimate, error) {
	var cost CostEstimate
	err := inputcheck.InstanceID(instanceID)
	if err == nil {
		cost, err = c.ops.estimateCost(ctx, instanceID)
	}
	if err != nil {
		return CostEstimate{}, fmt.Errorf("admin: cost: %w", err)
	}
	return cost, nil
}

func (l local) estimateCost(ctx context.Context, instanceID string) (cost CostEstimate, err error) {
	var executions []string // the current execution first
	for x, err := range l.hub.ListExecutions(ctx, instanceID) {
		if err != nil {
			return cost, err
		}
		executions = append(executions, x.ExecutionID)
	}
	var e costestimate.Estimator
	for _, id := range slices.Backward(executions) {
		for event, err := range l.hub.ReadHistory(ctx, instanceID, id, 0) {
			if err != nil {
				return cost, fmt.Errorf("instance %q: execution %s: %w", instanceID, id, err)
			}
			e.Add(&event)
		}
	}
	usage, list := e.Usage(), pricing.Current()
	cost = CostEstimate{
		InstanceID: instanceID, Executions: int64(len(executions)), Turns: e.Turns, Activities: e.Activities,
		Dollars: usage.Dollars(list), Lines: []CostLine{}, Region: list.Region, AsOf: list.AsOf,
	}
	for _, item := range usage.Items() {
		cost.Lines = append(cost.Lines, CostLine{
			Item: string(item), Description: list.Prices[item].What, Quantity: usage[item],
			Dollars: list.Of(item, usage[item]),
		})
	}
	return cost, nil
}
