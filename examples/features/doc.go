// Package features has small orchestrations, one file per feature. You can start them on a hub:
//
//	perdure start count-words --input '["call me Ishmael","mother died today"]' --wait
//
// The examples in the documentation of package perdure show the other features.
package features

import "github.com/perdure/perdure"

// Register adds the orchestrations and their activities to a registry.
func Register(r *perdure.Registry) {
	registerFanOut(r)
	registerApproval(r)
	registerTally(r)
	registerNewsletter(r)
}
