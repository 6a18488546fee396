package cost_test

import (
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/tests/cost"
)

func TestX(t *testing.T) {
	for _, s := range cost.Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := cost.Measure(t.Context(), &s)
				if err != nil {
					t.Fatal(err)
				}
				b := m.Bill(pricing.Current())
				t.Logf("%+v", b)
				for k, c := range m.Calls.ByCall() {
					t.Logf("%v: %v calls %v entries %v bytes %v", k, c.Calls, c.Entries, c.Bytes, c.Usage)
				}
				t.Log(m.Received, m.Deleted, m.Fired)
				for k, f := range m.Functions {
					t.Logf("%s %+v", k, *f)
				}
			})
		})
	}
}
