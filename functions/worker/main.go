// Command worker is the function that serves a work queue and runs activities.
package main

import (
	"github.com/perdure/perdure/examples"
	"github.com/perdure/perdure/lambdahandler"
)

func main() { lambdahandler.StartWorker(examples.Registry()) }
