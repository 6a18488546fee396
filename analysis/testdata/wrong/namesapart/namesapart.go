// Command namesapart imports two packages with a call and a registration of different types.
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
