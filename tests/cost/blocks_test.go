package cost_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/tests/cost"
)

func TestX(t *testing.T) {
	bills, err := cost.BillBlocks(cost.Blocks(), pricing.Current(), func(s *cost.Shape) (m *cost.Measured, err error) {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { m, err = cost.Measure(t.Context(), s) })
		})
		if err != nil {
			t.Log(err)
			return &cost.Measured{Shape: *s}, nil
		}
		return m, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bills {
		fmt.Fprintf(os.Stdout, "%-50s %7.2f  rk %7.2f w %.3g r %.3g sqs %.3g inv %.3g gbs %.4g bytes %.0f\n", b.Name, b.Total, b.Reckoned, b.WriteUnits, b.ReadUnits, b.SQSRequests, b.Invocations, b.GBSeconds, b.Stored)
	}
}
