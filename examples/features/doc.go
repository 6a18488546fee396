// Package features has small orchestrations, a file for each thing that the engine can do, to be started on a hub as they are:
//
//	perdure start count-words --input '["call me Ishmael","mother died today"]' --wait
//
// The examples of the package perdure show the rest, each with the function that it is about.
package features

import "github.com/perdure/perdure"

// Register adds the orchestrations and their activities to a registry.
func Register(r *perdure.Registry) {
	registerFanOut(r)
	registerApproval(r)
	registerTally(r)
	registerNewsletter(r)
}
