// Package nearer stands between an orchestration and what it must not do.
package nearer

import "github.com/perdure/perdure/analysis/testdata/far"

// Label leads to the clock in two steps.
func Label(name string) string { return name + far.Stamp() }
