// Package maporder depends on the order of maps.
package maporder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/far"
)

func send(context.Context, string) (string, error) { return "", nil }

func order(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	for name := range in {
		perdure.CallActivity(ctx, send, name).Await(ctx) // want `order ranges over a map and calls perdure\.CallActivity: .*slices\.Sorted\(maps\.Keys\(m\)\) \[maporder\]` `ranges over a map and calls perdure\.Future\.Await`
	}
	for name := range maps.Keys(in) {
		one(ctx, name) // want `ranges over a map and calls one.*\[maporder\]`
	}
	var names []string
	for name := range in {
		names = append(names, name) // want `ranges over a map and appends to names.*\[maporder\]`
	}
	for name, n := range in {
		if n > 3 {
			return name, nil // want `ranges over a map and returns the current element.*\[maporder\]`
		}
	}
	first := ""
	for name := range in {
		first = name
		break // want `stops with the current element in first.*\[maporder\]`
	}
	text := ""
	for name, n := range in {
		line := fmt.Sprint(name, n)
		text += line // want `writes text.*\[maporder\]`
	}
	var b strings.Builder
	for name := range in {
		b.WriteString(name) // want `writes text.*\[maporder\]`
	}
	for name, n := range in {
		fmt.Fprintln(&b, name, n) // want `writes text.*\[maporder\]`
	}
	names = slices.Collect(maps.Keys(in)) // want `makes an unsorted slice of a map.*\[maporder\]`
	names = keys(in)                      // want `order calls keys \(.*\), which ranges over a map and appends to names.*\[maporder\]`
	var s far.Shelf
	for _, name := range s.Names() { // want `far\.Shelf\.Names \(.*\), which ranges over a map and appends to names.*\[maporder\]`
		ctx.SetCustomStatus(name + first + text + b.String() + names[0])
	}
	return anyOf(in), nil // want `anyOf \(.*\), which ranges over a map and returns the current element.*\[maporder\]`
}

func one(*perdure.OrchestrationContext, string) {}

func keys[K comparable, V any](m map[K]V) (names []K) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func anyOf(m map[string]int) string {
	for name := range m {
		return name
	}
	return ""
}
