// Package sharedfutures stores futures in slices and maps that other variables share and read.
package sharedfutures

import (
	"context"
	"iter"

	"github.com/perdure/perdure"
)

func send(context.Context, string) (string, error) { return "", nil }

type futures []*perdure.Future[string]

// set writes an element of the caller's slice.
func (f futures) set(ctx *perdure.OrchestrationContext, i int) {
	f[i] = perdure.CallActivity(ctx, send, "a")
}

// put writes an element of the caller's map.
func put(ctx *perdure.OrchestrationContext, all futures, byName map[string]*perdure.Future[string]) {
	all[0] = perdure.CallActivity(ctx, send, "a")
	byName["a"] = perdure.CallActivity(ctx, send, "a")
}

type box struct {
	slots futures
	rows  []futures
}

// first is a slice in a box.
func (b *box) first() (futures, error) { return b.rows[0], nil }

func order(ctx *perdure.OrchestrationContext, n int) (string, error) {
	all := make(futures, n)
	all.set(ctx, 0)
	put(ctx, all, map[string]*perdure.Future[string]{})
	view, rest := all, all[1:]
	view[0] = perdure.CallActivity(ctx, send, "a")
	rest[0] = perdure.CallActivity(ctx, send, "a")
	func(inner futures) { inner[0] = perdure.CallActivity(ctx, send, "a") }(all)
	converted := []*perdure.Future[string](all)
	converted[1] = perdure.CallActivity(ctx, send, "a")
	again := append(all[:0], nil)
	again[0] = perdure.CallActivity(ctx, send, "a")
	return joined(ctx, all)
}

func inRows(ctx *perdure.OrchestrationContext, b *box) (string, error) {
	slots := b.slots
	slots[0] = perdure.CallActivity(ctx, send, "a")
	row := b.rows[0]
	row[0] = perdure.CallActivity(ctx, send, "a")
	for _, row := range b.rows {
		row[0] = perdure.CallActivity(ctx, send, "a")
	}
	first, err := b.first()
	if err != nil {
		return "", err
	}
	first[0] = perdure.CallActivity(ctx, send, "a")
	return joined(ctx, b.rows[0])
}

func found(ctx *perdure.OrchestrationContext, byName map[string]futures, some any, each iter.Seq[futures]) (string, error) {
	if row, ok := byName["a"]; ok {
		row[0] = perdure.CallActivity(ctx, send, "a")
	}
	for row := range each {
		row[0] = perdure.CallActivity(ctx, send, "a")
	}
	switch row := some.(type) {
	case futures:
		row[0] = perdure.CallActivity(ctx, send, "a")
	}
	row, ok := some.(futures)
	if ok {
		row[0] = perdure.CallActivity(ctx, send, "a")
	}
	return joined(ctx, byName["a"])
}

// pairs are arrays that the code reads as a whole.
func pairs(ctx *perdure.OrchestrationContext, _ string) (string, error) {
	var pair [2]*perdure.Future[string]
	for i := range pair {
		pair[i] = perdure.CallActivity(ctx, send, "a")
	}
	for range len(pair) {
		if err := perdure.WhenAll(ctx, perdure.Awaitables(pair[:])...); err != nil {
			return "", err
		}
	}
	return "", nil
}

func joined(ctx *perdure.OrchestrationContext, all futures) (string, error) {
	return "", perdure.WhenAll(ctx, perdure.Awaitables(all)...)
}
