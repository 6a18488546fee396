// Command renewer is the function that serves the timers queue, and keeps watch over what got stuck.
package main

import (
	"github.com/perdure/perdure/examples"
	"github.com/perdure/perdure/lambdahandler"
)

func main() { lambdahandler.StartRenewer(examples.Registry()) }
