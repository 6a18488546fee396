package cost_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/internal/docpage"
	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/tests/cost"
)

// TestCostOfBlocks_measured_isThatOfThePage compares the price list of the page with the measured cost of its blocks.
func TestCostOfBlocks_measured_isThatOfThePage(t *testing.T) {
	t.Parallel()
	blocks, bills := cost.Blocks(), billsOfBlocks(t)
	if *show != "" {
		printBlocks(t, os.Stdout, blocks, bills)
	}
	if *update {
		write(t, page, "blocks", func(w io.Writer) error { return cost.WriteBlocks(w, blocks, bills) })
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := cost.ReadBlocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range blocks {
		name, total := blocks[i].Name, bills[i].Total
		if blocks[i].Step {
			continue
		}
		within := bound
		if blocks[i].IsTimed || blocks[i].Count >= 1000 {
			within = chanceBound
		}
		if want, ok := listed[name]; !ok || math.Abs(total-want) > want*within+0.01 {
			t.Errorf("%s: got %.2f dollars a million, docs/operate/cost.md has %.2f: "+
				"run go test ./tests/cost -update and check the difference", name, total, want)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/operate/cost.md has the block %q, which is not measured", name)
	}
	sumsAreRight(t, bills)
}

// sumsAreRight checks the sums of several blocks on the page.
func sumsAreRight(t *testing.T, bills []cost.Bill) {
	t.Helper()
	of := map[string]*cost.Bill{}
	for i := range bills {
		of[bills[i].Name] = &bills[i]
	}
	price := func(name string) float64 { return of[name].Total }
	const n = cost.OrderActivities
	order := price(cost.BlockInstance) + n*price(cost.BlockActivity) + price(cost.BlockEvent) +
		price(cost.BlockCancelled) + price(cost.BlockPurge) + (n+1)*price(cost.BlockPurgeTurn)
	if whole := price(cost.BlockOrder) + price(cost.BlockOrderPurge); math.Abs(order-whole) > whole*bound {
		t.Errorf("order: got %.2f dollars a million by its blocks, %.2f as metered", order, whole)
	}
	for _, name := range []string{"KB of an event", "KB of an input", "KB of a result", "KB of a start"} {
		if got, want := price(name), price(cost.BlockKilobyte); math.Abs(got-want) > want*bound {
			t.Errorf("%s: got %.2f dollars a million, other payloads %.2f", name, got, want)
		}
	}
	s := of[cost.BlockSweep]
	if s.WriteUnits != 0 || s.ReadUnits != cost.SweepReads || s.SQSRequests != cost.SweepRequests {
		t.Errorf("sweep without work: got %v write units, %v read units and %v requests",
			s.WriteUnits, s.ReadUnits, s.SQSRequests)
	}
}

// billsOfBlocks measures the shapes of all blocks.
func billsOfBlocks(t *testing.T) []cost.Bill {
	t.Helper()
	bills, err := cost.BillBlocks(cost.Blocks(), pricing.Current(), func(s *cost.Shape) (m *cost.Measured, err error) {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { m, err = cost.Measure(t.Context(), s) })
		})
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bills
}

func printBlocks(t *testing.T, w io.Writer, blocks []cost.Block, bills []cost.Bill) {
	t.Helper()
	if *show == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{"blocks": bills}); err != nil {
			t.Error(err)
		}
		return
	}
	var b bytes.Buffer
	if err := cost.WriteBlocks(&b, blocks, bills); err != nil {
		t.Error(err)
	}
	_, _ = fmt.Fprintf(w, "%s\n", b.Bytes())
}

// TestCostPage_unitPrices_areThoseOfTheList compares values that depend only on the price list with the page.
func TestCostPage_unitPrices_areThoseOfTheList(t *testing.T) {
	t.Parallel()
	l := pricing.Current()
	for section, to := range map[string]func(w io.Writer) error{
		"unit prices": func(w io.Writer) error { return cost.WriteUnitPrices(w, l) },
		"other items": func(w io.Writer) error { return cost.WriteOtherCosts(w, cost.OtherCosts(l)) },
	} {
		if *update {
			write(t, page, section, to)
		}
		var want bytes.Buffer
		if err := to(&want); err != nil {
			t.Fatal(err)
		}
		writing.Lock()
		got, err := docpage.Read(page, section)
		writing.Unlock()
		if err != nil || got != want.String() {
			t.Errorf("%s: got another table (run go test ./tests/cost -update), error %v, want\n%s",
				section, err, want.String())
		}
	}
}

// TestEstimateCost_ofATestHub_isThatOfTheHistory estimates the cost of an orchestration before it is deployed.
func TestEstimateCost_ofATestHub_isThatOfTheHistory(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, cost.Registry())
	id, err := env.Client().Start(t.Context(), cost.OrderName, cost.OrderActivities)
	if err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Minute)
	if err := env.Client().RaiseEvent(t.Context(), id, "go", true); err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	estimate, err := env.Admin().EstimateCost(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	// An order without the later messages of its cancelled timer costs $27 a million.
	if got := estimate.Dollars * 1e6; math.Abs(got-27) > 27*bound || estimate.Activities != cost.OrderActivities {
		t.Errorf("got %.2f dollars a million, %+v", got, estimate)
	}
}
