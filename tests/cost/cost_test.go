package cost_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/internal/docpage"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/tests/cost"
)

var (
	update = flag.Bool("update", false, "write the figures into docs/operate/cost.md and scale.md")
	show   = flag.String("show", "", "print the figures: table or json")
)

// Pages with the price list and with the workloads.
const page, workloads = "../../docs/operate/cost.md", "../../docs/operate/scale.md"

// The tolerance for the difference between the measured cost of a shape and docs/operate/scale.md. Batches of messages,
// the last delay of a timer, and the child outcomes that share a turn vary at random.
const (
	bound        = 0.05
	batchesBound = 0.1
	chanceBound  = 0.25
)

// The test fails if a shape costs more than the value in docs/operate/scale.md. For a cheaper shape, update the page
// with -update.
func TestCostOfShapes_measured_matchesScalePage(t *testing.T) {
	t.Parallel()
	bills := billsOf(t)
	if t.Failed() {
		return
	}
	if *show != "" {
		printTo(t, os.Stdout, bills)
	}
	if *update {
		write(t, workloads, "workloads", func(w io.Writer) error { return cost.WriteWorkloads(w, bills) })
	}
	text, err := os.ReadFile(workloads)
	if err != nil {
		t.Fatal(err)
	}
	said, err := cost.ReadWorkloads(string(text))
	if err != nil {
		t.Fatal(err)
	}
	shapes := cost.Shapes()
	for i, b := range bills {
		if b.Name == "" { // the shape was not measured
			continue
		}
		within := bound
		switch {
		case !shapes[i].OfActivities(), shapes[i].InBatches():
			within = chanceBound
		case shapes[i].AtOnce > 0 || shapes[i].Count >= 1000:
			within = batchesBound
		}
		if want, ok := said[b.Name]; !ok || b.Total > want*(1+within)+0.01 || b.Total < want*(1-within)-0.01 {
			t.Errorf("%s: %.2f dollars a million, docs/operate/scale.md says %.2f: run go test ./tests/cost "+
				"-update, and see why", b.Name, b.Total, want)
		}
	}
	for i, b := range bills {
		if s := &shapes[i]; b.Name == "" || s.Cold || s.AtOnce > 0 || s.Drive != nil || s.Of == "sub-orchestrations" {
			continue // docs/operate/scale.md lists costs that an estimate from the history omits
		}
		within := batchesBound
		if !shapes[i].OfActivities() || shapes[i].InBatches() {
			within = chanceBound
		}
		if b.Reckoned > b.Total*(1+within) || b.Reckoned < b.Total*(1-within) {
			t.Errorf("%s: %.2f dollars a million by its history, %.2f as metered", b.Name, b.Reckoned, b.Total)
		}
	}
	for name := range said {
		if !isShape(shapes, name) {
			t.Errorf("docs/operate/scale.md has %q, which is not measured", name)
		}
	}
}

func isShape(shapes []cost.Shape, name string) bool {
	for i := range shapes {
		if shapes[i].Name == name {
			return true
		}
	}
	return false
}

// billsOf measures all shapes. With -short it skips shapes that take long.
func billsOf(t *testing.T) []cost.Bill {
	t.Helper()
	shapes := cost.Shapes()
	bills := make([]cost.Bill, len(shapes))
	t.Run("measure", func(t *testing.T) {
		for i := range shapes {
			if testing.Short() && shapes[i].Long {
				continue
			}
			t.Run(shapes[i].Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m, err := cost.Measure(t.Context(), &shapes[i])
					if err != nil {
						t.Fatal(err)
					}
					bills[i] = m.Bill(pricing.Current())
				})
			})
		}
	})
	return bills
}

func printTo(t *testing.T, w io.Writer, bills []cost.Bill) {
	t.Helper()
	l := pricing.Current()
	if *show == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{
			"region": l.Region, "asOf": l.AsOf, "shapes": bills, "beside": cost.AllBeside(l),
		}); err != nil {
			t.Error(err)
		}
		return
	}
	var b bytes.Buffer
	for _, err := range []error{
		cost.WriteWorkloads(&b, bills), line(&b),
		cost.WriteBeside(&b, cost.AllBeside(l)), line(&b),
		cost.WriteUnitPrices(&b, l),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	_, _ = fmt.Fprintf(w, "Dollars at the list prices of %s of %s.\n\n%s\n", l.Region, l.AsOf, b.Bytes())
}

func line(w io.Writer) error {
	_, err := fmt.Fprintln(w)
	return err
}

// writing prevents concurrent changes of a page.
var writing sync.Mutex

// write replaces a section of a page.
func write(t *testing.T, page, section string, to func(w io.Writer) error) {
	t.Helper()
	writing.Lock()
	defer writing.Unlock()
	var b bytes.Buffer
	if err := to(&b); err != nil {
		t.Fatal(err)
	}
	if err := docpage.Write(page, section, b.String()); err != nil {
		t.Fatal(err)
	}
}
