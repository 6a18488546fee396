// Command orchestrator runs the turns of instances.
package main

import (
	"log/slog"

	"github.com/perdure/perdure/lambdahandler"

	"example.com/subscriptions"
)

func main() {
	sandbox := subscriptions.Sandbox{Log: slog.Default()}
	lambdahandler.StartOrchestrator(subscriptions.Registry(sandbox, sandbox))
}
