// Package mapkept depends on the order of maps, through stored values and through calls.
package mapkept

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/perdure/perdure"
)

type parcel struct{ Last, First string }

func send(context.Context, string) (string, error) { return "", nil }

func fills(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	names, i := make([]string, len(in)), 0
	for name := range in {
		names[i] = name // want `^fills ranges over a map and fills names: .*\[maporder\]`
		i++
	}
	var pairs [9][2]string
	at := 0
	for name := range maps.Keys(in) {
		pairs[at][1] = name // want `fills pairs:.*\[maporder\]`
		at++
	}
	all := slices.AppendSeq(names, maps.Keys(in)) // want `makes an unsorted slice of a map.*\[maporder\]`
	keys := maps.Keys(in)
	for name := range keys {
		all = append(all, name) // want `appends to all.*\[maporder\]`
	}
	all = append(all, slices.Collect(keys)...)                   // want `makes an unsorted slice of a map.*\[maporder\]`
	all = append(all, reflect.ValueOf(in).MapKeys()[0].String()) // want `makes an unsorted slice of a map.*\[maporder\]`
	return all[0] + pairs[0][1], nil
}

func calls(ctx *perdure.OrchestrationContext, in map[string]int) (string, error) {
	charge := func(name string) error {
		_, err := perdure.CallActivity(ctx, send, name).Await(ctx)
		return err
	}
	do := one
	for name := range in {
		func() {
			_, _ = perdure.CallActivity(ctx, send, name).Await(ctx) // want `ranges over a map and calls perdure\.CallActivity.*\[maporder\]` `ranges over a map and calls perdure\.Future\.Await.*\[maporder\]`
		}()
		_ = charge(name)       // want `ranges over a map and calls charge.*\[maporder\]`
		do(ctx, name)          // want `ranges over a map and calls do.*\[maporder\]`
		steps.first(ctx, name) // want `ranges over a map and calls steps\.first.*\[maporder\]`
	}
	text := ""
	for name := range in {
		func(of string) {
			text += of // want `writes text.*\[maporder\]`
		}(name)
		text = text + name // want `writes text.*\[maporder\]`
	}
	return text, nil
}

var steps = struct {
	first func(*perdure.OrchestrationContext, string)
}{one}

func one(*perdure.OrchestrationContext, string) {}

func lasts(ctx *perdure.OrchestrationContext, in map[string]int) (result string, _ error) {
	last := ""
	for name := range in {
		last = name // want `ranges over a map and keeps the last element in last.*\[maporder\]`
	}
	var p parcel
	for name, n := range in {
		if n > 3 {
			p.First = name
			break // want `stops with the current element in p\.First.*\[maporder\]`
		}
	}
	for name := range in {
		p.Last = name // want `keeps the last element in p\.Last.*\[maporder\]`
	}
	var firsts [2]string
	for name := range in {
		firsts[0] = name // want `keeps the last element in firsts\[0\].*\[maporder\]`
	}
	result = firsts[0]
	for name := range in {
		result = name // want `keeps the last element in result.*\[maporder\]`
	}
	note(&p, in)                                                          // want `lasts calls note \(.*\), which ranges over a map and keeps the last element in p\.Last.*\[maporder\]`
	return p.First + p.Last, perdure.Sleep(ctx, time.Duration(len(last))) // the order of the map decides how long
}

func note(p *parcel, in map[string]int) {
	for name := range in {
		p.Last = name
	}
}
