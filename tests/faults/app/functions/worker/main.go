// Command worker is the worker of the faults' application.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/faults/app"
)

func main() { lambdahandler.StartWorker(app.Registry()) }
