package providertest

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest/internal/kit"
)

// declinable contains the optional interfaces that are part of provider.Provider, with a call of each interface.
var declinable = []struct {
	capability provider.Capability
	call       func(f *kit.Fixture) error
}{
	{provider.CapabilityAnnotations, func(f *kit.Fixture) error {
		return f.Provider.Annotate(f.Ctx(), "none", provider.Note{})
	}},
	{provider.CapabilityBulkJobs, func(f *kit.Fixture) error { return kit.ErrOf(f.Provider.ListJobs(f.Ctx())) }},
	{provider.CapabilityDeadLetterRecovery, func(f *kit.Fixture) error {
		return kit.LastErr(f.Provider.DeadLetteredRecords(f.Ctx()))
	}},
	{provider.CapabilityMonitoring, func(f *kit.Fixture) error {
		return kit.ErrOf(f.Provider.CountAttention(f.Ctx()))
	}},
	{provider.CapabilityRetention, func(f *kit.Fixture) error { return kit.LastErr(f.Provider.DueInstances(f.Ctx())) }},
	{provider.CapabilitySchedules, func(f *kit.Fixture) error {
		return kit.LastErr(f.Provider.ListSchedules(f.Ctx(), ""))
	}},
}

// runLacks tests that a provider does not support exactly the capabilities in Lacks.
func (h Harness) runLacks(t *testing.T) {
	t.Helper()
	t.Run("optional interfaces", func(t *testing.T) {
		for _, d := range declinable {
			t.Run(string(d.capability), func(t *testing.T) {
				h.open(t, 0, func(f *kit.Fixture) {
					declined := errors.Is(d.call(f), provider.UnsupportedError{Capability: d.capability})
					if declined != h.lacks(d.capability) {
						f.T.Errorf("the provider declines it: %v, and Harness.Lacks says: %v", declined, !declined)
					}
				})
			})
		}
	})
	for _, c := range h.Lacks {
		if !isDeclinable(c) {
			t.Errorf("Harness.Lacks has %q, which is not part of provider.Provider", c)
		}
	}
}

func isDeclinable(c provider.Capability) bool {
	for _, d := range declinable {
		if d.capability == c {
			return true
		}
	}
	return false
}
