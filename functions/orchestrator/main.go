// Command orchestrator is the function that serves the inbox of a task hub and runs turns.
package main

import (
	"github.com/perdure/perdure/examples"
	"github.com/perdure/perdure/lambdahandler"
)

func main() { lambdahandler.StartOrchestrator(examples.Registry()) }
