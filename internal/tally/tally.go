// Package tally processes the items of perdure.Map, counts their results, and decides when the Map ends.
package tally

import (
	"cmp"
	"errors"
	"slices"
)

// Policy limits a Map. 0 means no limit.
type Policy struct {
	// Concurrency is the number of items that are processed concurrently.
	Concurrency int
	// MinSuccessful is the number of successes that end the Map successfully.
	MinSuccessful int
	// FatalFailures is the number of failures that end the Map with an error.
	FatalFailures int
}

// Tally counts the results of items. The zero Tally counts no items.
type Tally struct {
	policy    Policy
	items     int
	started   int
	succeeded int
	failed    []failure
}

type failure struct {
	item int
	err  error
}

// New returns the Tally of a Map.
func New(p Policy, items int) Tally {
	p.MinSuccessful = min(p.MinSuccessful, items)
	return Tally{policy: p, items: items}
}

// Start returns the next item to start. ok is false if all items have been started.
func (t *Tally) Start() (item int, ok bool) {
	if t.started == t.items {
		return 0, false
	}
	t.started++
	return t.started - 1, true
}

// Add counts the result of an item, and reports whether the results of further items cannot change the error.
func (t *Tally) Add(item int, err error) (decided bool) {
	if err == nil {
		t.succeeded++
	} else {
		t.failed = append(t.failed, failure{item, err})
	}
	p := t.policy
	return p.MinSuccessful > 0 && (t.succeeded >= p.MinSuccessful || len(t.failed) > t.items-p.MinSuccessful) ||
		p.FatalFailures > 0 && len(t.failed) >= p.FatalFailures
}

// Err returns the error of the Map. It joins the errors of the failed items in the order of the items.
func (t *Tally) Err() error {
	p := t.policy
	if p.MinSuccessful > 0 && t.succeeded >= p.MinSuccessful ||
		p.MinSuccessful == 0 && len(t.failed) <= max(p.FatalFailures-1, 0) {
		return nil
	}

	slices.SortFunc(t.failed, func(a, b failure) int { return cmp.Compare(a.item, b.item) })
	errs := make([]error, len(t.failed))
	for i, f := range t.failed {
		errs[i] = f.err
	}
	return errors.Join(errs...)
}
