// Command namesapart puts together two packages that do not fit, and do not know each other.
package main

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/calling"
	"github.com/perdure/perdure/analysis/testdata/weighing"
	"github.com/perdure/perdure/lambdahandler"
)

func main() {
	r := perdure.NewRegistry()
	weighing.Register(r)
	perdure.AddOrchestration(r, "deliver", calling.Deliver)
	lambdahandler.StartOrchestrator(r) // want `activity "weigh-parcel", called at calling/calling.go:8, gets a number but takes a string`
}
