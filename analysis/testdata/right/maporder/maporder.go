// Package maporder ranges over maps in code that does not depend on the order.
package maporder

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/perdure/perdure"
)

func order(ctx *perdure.OrchestrationContext, in map[string]int) (int, error) {
	sum, all := 0, map[string][]string{}
	for name, n := range in {
		sum += n
		all[name] = append(all[name], name)
		in[name] = n + 1
		line := ""
		line += name
		var b strings.Builder
		b.WriteString(line)
	}
	for _, n := range in {
		if n < 0 {
			return 0, errors.New("negative")
		}
	}
	found := false
	for name := range in {
		if name == "a" {
			found = true
			break
		}
	}
	var names []string
	for name := range in {
		names = append(names, name)
	}
	slices.Sort(names)
	others := slices.Sorted(maps.Keys(in))
	others = keys(in)
	sort.Strings(others)
	more := slices.Collect(maps.Values(in))
	slices.SortFunc(more, func(a, b int) int { return cmp.Compare(a, b) })
	for _, name := range slices.Sorted(slices.Values(keys(in))) {
		ctx.SetCustomStatus(name)
	}
	for name := range in {
		ctx.Logger().Info("a line", "name", name)
		delete(in, name)
	}
	best := 0
	for _, n := range in {
		best = max(best, n)
	}
	if found {
		return sum + best, nil
	}
	return len(names), nil
}

func keys(m map[string]int) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}
