// Command orchestrator is the orchestrator function of the self-test.
package main

import (
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/lambdahandler"
)

func main() { lambdahandler.StartOrchestrator(app.Registry(nil)) }
