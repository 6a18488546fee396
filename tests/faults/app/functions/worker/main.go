// Command worker is the worker function of the application of the fault tests.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/faults/app"
)

func main() { lambdahandler.StartWorker(app.Registry()) }
