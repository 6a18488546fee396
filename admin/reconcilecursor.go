package admin

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// position is the point at which a reconcile continues. It consists of a page and of unfinished instances of earlier
// pages. If a few instances fail for hours, the next call therefore does not repeat all pages after them.
type position struct {
	// Page is the cursor of a page. It is empty for the first page, and if no page is left (PagesDone).
	Page      string `json:"at,omitempty"`
	PagesDone bool   `json:"over,omitempty"`
	// Instances are the instances of earlier pages.
	Instances []string `json:"also,omitempty"`
}

const (
	// maxPositionInstances limits the instances of a position, so that its cursor stays readable. With more instances,
	// the position points to an earlier page instead.
	maxPositionInstances = 20
	// positionPrefix distinguishes an encoded position from the cursor of a list. The cursor of a list has no dot.
	positionPrefix = "reconcile."
)

// String returns the position as a cursor.
func (p position) String() string {
	if !p.PagesDone && len(p.Instances) == 0 {
		return p.Page
	}
	doc, _ := json.Marshal(p) //nolint:errchkjson // strings: cannot fail
	return positionPrefix + base64.RawURLEncoding.EncodeToString(doc)
}

func parsePosition(cursor string) (p position, err error) {
	encoded, isPosition := strings.CutPrefix(cursor, positionPrefix)
	if !isPosition {
		return position{Page: cursor}, nil
	}
	doc, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil || json.Unmarshal(doc, &p) != nil || !p.isPossible() {
		return position{}, &provider.FieldError{Field: inputcheck.FieldCursor, Problem: "is not a cursor of Reconcile"}
	}
	return p, nil
}

// isPossible reports whether a call can end at the position.
func (p position) isPossible() bool {
	invalid := func(id string) bool { return inputcheck.InstanceID(id) != nil }
	return len(p.Instances) <= maxPositionInstances && !slices.ContainsFunc(p.Instances, invalid) &&
		!strings.HasPrefix(p.Page, positionPrefix) && (p.Page == "" || !p.PagesDone)
}

// position returns the point at which another call continues. It contains the unfinished instances of earlier pages,
// the earliest first. With too many instances, it points to the first page with an instance that it does not contain.
func (r *reconciler) position() position {
	p := position{Page: r.pageCursor, PagesDone: r.pagesDone}
	if !r.pagesDone && r.pageCursor == "" {
		return p // the next call starts at the beginning
	}

	instances := slices.Sorted(maps.Keys(r.named)) // unfinished instances of the position at which this call started
	var failed []failedInstance
	for _, in := range slices.Concat(r.deferred, r.failed) {
		if !r.named[in.instanceID] && (r.pagesDone || in.pageCursor != r.pageCursor) {
			failed = append(failed, in)
		}
	}
	slices.SortFunc(failed, func(a, b failedInstance) int {
		return cmp.Or(cmp.Compare(a.page, b.page), strings.Compare(a.instanceID, b.instanceID))
	})
	if free := maxPositionInstances - len(instances); len(failed) > free {
		first := failed[free]
		p.Page, p.PagesDone = first.pageCursor, false
		failed = slices.DeleteFunc(failed, func(in failedInstance) bool { return in.page >= first.page })
	}
	for _, in := range failed {
		instances = append(instances, in.instanceID)
	}
	p.Instances = instances
	return p
}
