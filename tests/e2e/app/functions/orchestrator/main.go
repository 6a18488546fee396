// Command orchestrator is the orchestrator function of the application of the end-to-end tests.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/e2e/app"
)

func main() { lambdahandler.StartOrchestrator(app.Registry(nil), lambdahandler.WithCodec(app.Codec())) }
