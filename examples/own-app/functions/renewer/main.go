// Command renewer handles due timers and runs the sweeper.
package main

import (
	"log/slog"

	"github.com/perdure/perdure/lambdahandler"

	"example.com/subscriptions"
)

func main() {
	sandbox := subscriptions.Sandbox{Log: slog.Default()}
	lambdahandler.StartRenewer(subscriptions.Registry(sandbox, sandbox))
}
