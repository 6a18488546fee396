// Package mapkept stores results of ranges over maps that do not depend on the order.
package mapkept

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"sort"

	"github.com/perdure/perdure"
)

type item struct {
	Name  string
	Place int
}

type sum struct{ Total int }

func sorts(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	names, i := make([]string, len(in)), 0
	for name := range in {
		names[i] = name
		i++
	}
	sort.Strings(names)
	all := slices.AppendSeq([]string(nil), maps.Keys(in))
	slices.Sort(all)
	keys := maps.Keys(in)
	more := slices.Sorted(keys)
	for name := range keys {
		more = append(more, name)
	}
	slices.Sort(more)
	sorted := slices.Values(slices.Sorted(maps.Keys(in)))
	for name := range sorted {
		ctx.SetCustomStatus(name)
	}
	either := maps.Keys(in)
	either = slices.Values(names)
	for name := range either {
		ctx.SetCustomStatus(name)
	}
	values := reflect.ValueOf(in).MapKeys()
	slices.SortFunc(values, func(a, b reflect.Value) int { return len(a.String()) - len(b.String()) })
	return names[0] + all[0] + more[0] + values[0].String(), nil
}

func places(ctx *perdure.OrchestrationContext, in map[string]item) (int, error) {
	// Each element has its own index.
	in2, at := make([]string, len(in)), 0
	counts := [3]int{}
	for name, it := range in {
		in2[it.Place] = name
		at = it.Place
		in2[at] = name
		place := at
		counts[place]++
		counts[0] += place
		counts[1] = max(counts[1], place)
	}
	var two [2]int
	var current *item
	for name, it := range in {
		if name == "a" {
			two[0] = it.Place
		}
		switch name {
		case "b":
			two[1] = it.Place
		}
		current = &it
		current.Name = name
		func(other *perdure.OrchestrationContext) { counts[0] += it.Place }(ctx)
	}
	return len(in2) + counts[0] + two[0], nil
}

func keeps(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	if len(in) == 1 {
		for name := range in {
			return name, nil
		}
	}
	only := ""
	for name := range in {
		only = name
	}
	best, most, total, s, failed := "", 0, 0, sum{}, error(nil)
	for name, n := range in {
		if n > most || n == most && name < best {
			best, most = name, n
		}
		total = total + n
		s.Total = s.Total + n
		scratch := ""
		scratch = name
		unused := scratch
		_ = unused
		failed = check(n)
		if failed != nil {
			continue
		}
		func() {
			if n > 3 {
				return
			}
			total++
		}()
	}
	left := "nobody reads it any more"
	ctx.SetCustomStatus(left)
	for name := range in {
		left = name
	}
	first := func(n int) int { return n + 1 }
	for _, n := range in {
		total += first(n)
	}
	return best + only, errors.Join(ctx.Err(), failed)
}

func check(n int) error {
	if n < 0 {
		return errors.New("negative")
	}
	return nil
}
