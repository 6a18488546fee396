// Command worker is the worker of the end-to-end tests' application.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/e2e/app"
)

func main() { lambdahandler.StartWorker(app.Registry()) }
