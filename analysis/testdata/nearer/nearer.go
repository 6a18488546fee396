// Package nearer has a function between an orchestration and a forbidden call.
package nearer

import "github.com/perdure/perdure/analysis/testdata/far"

// Label reads the clock through another package.
func Label(name string) string { return name + far.Stamp() }
