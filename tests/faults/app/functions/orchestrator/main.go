// Command orchestrator is the orchestrator of the faults' application.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/faults/app"
)

func main() { lambdahandler.StartOrchestrator(app.Registry()) }
