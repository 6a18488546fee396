// Command orchestrator is the orchestrator function of the application of the fault tests.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/faults/app"
)

func main() { lambdahandler.StartOrchestrator(app.Registry()) }
