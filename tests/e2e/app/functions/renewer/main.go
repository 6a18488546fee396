// Command renewer is the renewer of the end-to-end tests' application.
package main

import (
	"github.com/perdure/perdure/lambdahandler"
	"github.com/perdure/perdure/tests/e2e/app"
)

func main() { lambdahandler.StartRenewer(app.Registry(nil)) }
