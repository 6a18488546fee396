// Command renewer serves timers, and keeps watch over what got stuck.
package main

import (
	"log/slog"

	"github.com/perdure/perdure/lambdahandler"

	"example.com/subscriptions"
)

func main() {
	outside := subscriptions.Sandbox{Log: slog.Default()}
	lambdahandler.StartRenewer(subscriptions.Registry(outside, outside))
}
