// Command worker runs the activities of a work queue.
package main

import (
	"log/slog"

	"github.com/perdure/perdure/lambdahandler"

	"example.com/subscriptions"
)

func main() {
	sandbox := subscriptions.Sandbox{Log: slog.Default()}
	lambdahandler.StartWorker(subscriptions.Registry(sandbox, sandbox))
}
