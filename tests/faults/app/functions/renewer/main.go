// Command renewer is the renewer of the faults' application.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/faults/app"
)

func main() { lambdahandler.StartRenewer(app.Registry()) }
