package features

import (
	"time"

	"github.com/perdure/perdure"
)

// Request is a request for approval.
type Request struct {
	What string `json:"what"`
	// WithinSeconds is the time limit for the decision, in seconds.
	WithinSeconds int `json:"withinSeconds"`
}

// Decision is the data of the external event "decided".
type Decision struct {
	Approved bool   `json:"approved"`
	By       string `json:"by"`
}

// Approve waits for a person to raise the external event "decided", or for the time limit to expire.
//
//	perdure start approve --id trip --input '{"what":"a trip to Lyon","withinSeconds":3600}'
//	perdure raise trip decided --data '{"approved":true,"by":"Ada"}'
func Approve(ctx *perdure.OrchestrationContext, q Request) (string, error) {
	ctx.SetCustomStatus("waiting for a decision on " + q.What)
	decided := perdure.WaitForExternalEvent[Decision](ctx, "decided")
	late := perdure.CreateTimer(ctx, time.Duration(q.WithinSeconds)*time.Second)
	first, err := perdure.Select(ctx, decided, late)
	if err != nil {
		return "", err
	}
	if first == 1 {
		return "no decision in time", nil
	}
	d, err := decided.Await(ctx)
	if err != nil {
		return "", err
	}
	if !d.Approved {
		return "rejected by " + d.By, nil
	}
	return "approved by " + d.By, nil
}

func registerApproval(r *perdure.Registry) { perdure.AddOrchestration(r, "approve", Approve) }
