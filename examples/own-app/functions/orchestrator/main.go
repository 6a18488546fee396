// Command orchestrator runs the turns of instances.
package main

import (
	"log/slog"

	"github.com/perdure/perdure/lambdahandler"

	"example.com/subscriptions"
)

func main() {
	outside := subscriptions.Sandbox{Log: slog.Default()}
	lambdahandler.StartOrchestrator(subscriptions.Registry(outside, outside))
}
