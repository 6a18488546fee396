package main

import "testing"

// matrixFeatures and matrixInterfaces are the rows and columns of the matrix. Each cell tests a feature through an
// interface, or contains the reason for which the cell is empty. The test fails until a new row or column has all its
// cells.
var (
	matrixFeatures = []string{
		"codec", "large payloads", "exclusive keys", "inline", "restart", "pause", "updates", "tokens", "schedules",
		"retention", "versions", "entities", "cancellation", "queries", "details", "compensation",
	}
	matrixInterfaces = []string{
		"client", "http", "cli", cliOverAPI, "ui", "kit", "verify", "export and import", "reconcile", "linter",
	}
)

// cliOverAPI is the command line over the HTTP API. Its cells run the checks of the command line.
const cliOverAPI = "cli over API"

// cell is the position of a check in the matrix: a feature and an interface.
type cell struct{ feature, via string }

// check tests a cell, or contains the reason for which the cell is empty.
type check struct {
	run    func(t *testing.T)
	reason string
}

// no returns an empty cell with its reason.
func no(reason string) check { return check{reason: reason} }

func TestMatrix_everyCell_worksOrHasAReason(t *testing.T) {
	t.Parallel()
	cells := matrixCells()
	for _, feature := range matrixFeatures {
		for _, via := range matrixInterfaces {
			c, ok := cells[cell{feature, via}]
			delete(cells, cell{feature, via})
			switch {
			case !ok:
				t.Errorf("%s through %s: no cell", feature, via)
			case c.run == nil && c.reason == "":
				t.Errorf("%s through %s: neither a check nor a reason", feature, via)
			case c.run != nil:
				t.Run(feature+"/"+via, func(t *testing.T) {
					t.Parallel()
					c.run(t)
				})
			}
		}
	}
	for c := range cells {
		t.Errorf("%s through %s is not in the matrix", c.feature, c.via)
	}
}
