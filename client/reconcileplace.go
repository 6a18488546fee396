package client

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/provider"
)

// place is where a reconciliation goes on: at a page, and with instances of pages before that are not done. So one that does not succeed
// for hours leads nobody back over all that was done since.
type place struct {
	// At is the cursor of a page; empty is the first one, or, with Over, none: all pages are done.
	At   string `json:"at,omitempty"`
	Over bool   `json:"over,omitempty"`
	// Also are the instances beside.
	Also []string `json:"also,omitempty"`
}

const (
	// mostAlso bounds the instances that a place names. With more the place leads back: a line must still be readable.
	mostAlso = 20
	// placePrefix begins a place that is more than the cursor of a list, which has no dot.
	placePrefix = "reconcile."
)

func (p place) String() string {
	if !p.Over && len(p.Also) == 0 {
		return p.At
	}
	doc, _ := json.Marshal(p) //nolint:errchkjson // strings: cannot fail
	return placePrefix + base64.RawURLEncoding.EncodeToString(doc)
}

func parsePlace(cursor string) (p place, err error) {
	encoded, more := strings.CutPrefix(cursor, placePrefix)
	if !more {
		return place{At: cursor}, nil
	}
	doc, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || json.Unmarshal(doc, &p) != nil || len(p.Also) > mostAlso || p.Over && p.At != "" {
		return place{}, &provider.FieldError{Field: fieldCursor, Problem: "is not a cursor of Reconcile"}
	}
	return p, nil
}

// place returns where another call goes on. It names the instances of earlier pages that are not done, the earliest first; where these are too
// many, it leads back to the first page of those that it does not name.
func (w *reconciler) place() place {
	p := place{At: w.from, Over: w.over}
	if !w.over && w.from == "" {
		return p // the next call begins with all of them
	}

	named := slices.Sorted(maps.Keys(w.named)) // of a place that this call began with
	var failed []setAside
	for _, in := range slices.Concat(w.aside, w.refused) {
		if !w.named[in.instanceID] && (w.over || in.from != w.from) {
			failed = append(failed, in)
		}
	}
	slices.SortFunc(failed, func(a, b setAside) int {
		return cmp.Or(cmp.Compare(a.page, b.page), strings.Compare(a.instanceID, b.instanceID))
	})
	if room := mostAlso - len(named); len(failed) > room {
		back := failed[room]
		p.At, p.Over = back.from, false
		failed = slices.DeleteFunc(failed, func(in setAside) bool { return in.page >= back.page })
	}
	for _, in := range failed {
		named = append(named, in.instanceID)
	}
	p.Also = named
	return p
}
