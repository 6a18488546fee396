package main

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
)

func TestCost_severalExecutions_includesAll(t *testing.T) {
	t.Parallel()
	h := continuedTwice(t)
	h.mustRun("cost", "poller")
	h.wantGolden("cost.golden")
	var cost admin.CostEstimate
	if err := json.Unmarshal([]byte(h.mustRun("cost", "poller", "--json")), &cost); err != nil ||
		cost.Executions != 3 || cost.Turns != 2 || cost.Dollars <= 0 {
		t.Errorf("%+v, %v", cost, err)
	}
	h.wantError(cli.CodeError, "run perdure list", "cost", "missing")
}
