// Package namesgiven starts the orchestrator with a registry that importing programs create.
package namesgiven

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/lambdahandler"
)

// Audit calls an activity that each importing program registers.
func Audit(ctx *perdure.OrchestrationContext, what string) (string, error) {
	return perdure.CallActivityByName[string](ctx, "write-audit", what).Await(ctx)
}

// Main is called by the main functions of the programs.
func Main(r *perdure.Registry) {
	perdure.AddOrchestration(r, "audit", Audit)
	lambdahandler.StartOrchestrator(r)
}
