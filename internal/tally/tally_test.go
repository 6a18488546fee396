package tally_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/internal/tally"
)

var errItem = errors.New("item failed")

// Each case adds the results of four items in order until the tally is decided.
func TestAdd_decidesAsEarlyAsPossible(t *testing.T) {
	t.Parallel()
	ok, failed := error(nil), errItem
	all := tally.Policy{MinSuccessful: 4, FatalFailures: 3}
	one := tally.Policy{MinSuccessful: 1, FatalFailures: 2}
	for name, c := range map[string]struct {
		policy  tally.Policy
		results []error
		added   int
		fails   bool
	}{
		"no limits, all succeed":       {tally.Policy{}, []error{ok, ok, ok, ok}, 4, false},
		"no limits, one fails":         {tally.Policy{}, []error{failed, ok, ok, ok}, 4, true},
		"enough successes":             {tally.Policy{MinSuccessful: 2}, []error{failed, ok, ok, ok}, 3, false},
		"enough is impossible":         {tally.Policy{MinSuccessful: 3}, []error{failed, failed, ok, ok}, 2, true},
		"more than the items":          {tally.Policy{MinSuccessful: 9}, []error{ok, ok, ok, ok}, 4, false},
		"fatal failure":                {tally.Policy{FatalFailures: 1}, []error{ok, failed, ok, ok}, 2, true},
		"tolerated failure":            {tally.Policy{FatalFailures: 2}, []error{failed, ok, ok, ok}, 4, false},
		"tolerated, but not enough":    {all, []error{failed, ok, ok, ok}, 1, true},
		"fatal failures before enough": {one, []error{failed, failed, ok, ok}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := tally.New(c.policy, len(c.results))
			added := 0
			for {
				item, started := counts.Start()
				if !started {
					break
				}
				added++
				if counts.Add(item, c.results[item]) {
					break
				}
			}
			if err := counts.Err(); added != c.added || (err != nil) != c.fails {
				t.Errorf("added %d results, error is %v", added, err)
			}
		})
	}
}

func TestErr_joinsInTheOrderOfTheItems(t *testing.T) {
	t.Parallel()
	counts := tally.New(tally.Policy{}, 2)
	counts.Add(1, errors.New("second"))
	counts.Add(0, errors.New("first"))
	if err := counts.Err(); err.Error() != "first\nsecond" {
		t.Errorf("error is %q", err)
	}
}
