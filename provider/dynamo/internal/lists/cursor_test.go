package lists

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

func TestParseCursor_encodedCursor_isUnchanged(t *testing.T) {
	t.Parallel()
	q := provider.ListQuery{
		Status: provider.StatusRunning, Name: "order", Version: "1.0.0", Parent: "p",
		Tags: map[string]string{"a": "b", "c": "d"}, StartedAfter: time.Unix(1, 0),
		StartedBefore: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	q.Cursor = cursor{Before: "2026-01-01T00:00:00.000Z#abc", Query: queryDigest(q)}.String()
	q.Limit = 7 // not part of the filter
	if c, err := parseCursor(q); err != nil || c.Before != "2026-01-01T00:00:00.000Z#abc" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestParseCursor_foreignCursor_isRejected(t *testing.T) {
	t.Parallel()
	text := base64.RawURLEncoding.EncodeToString
	for name, s := range map[string]string{
		"no base64": "%%%", "no JSON": text([]byte("not ours")), "no object": text([]byte("[1]")),
		"null":         text([]byte("null")),
		"empty object": text([]byte("{}")), "no place": text([]byte(`{"q":"` + queryDigest(provider.ListQuery{}) +
			`"}`)),
		"other types": text([]byte(`{"b":1,"q":2}`)), "another filter": cursor{Before: "x", Query: "other"}.String(),
		"no filter": cursor{Before: "x"}.String(),
	} {
		_, err := parseCursor(provider.ListQuery{Cursor: s})
		if e, ok := errors.AsType[*provider.FieldError](err); !ok || e.Field != "cursor" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// DynamoDB fails a query whose start key cannot be the end of a page.
func TestParseCursor_positionOutsideTheList_isRejected(t *testing.T) {
	t.Parallel()
	after := provider.ListQuery{StartedAfter: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	before := provider.ListQuery{StartedBefore: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)}
	blocked := provider.ListQuery{Status: provider.StatusBlocked}
	const place = "2026-07-01T00:00:00.000Z"
	for name, c := range map[string]struct {
		q    provider.ListQuery
		at   cursor
		want bool
	}{
		"a place":                     {after, cursor{Before: place + "#12345678"}, true},
		"of a damaged instance":       {after, cursor{Before: "yesterday"}, true},
		"older than the list":         {after, cursor{Before: "2025-12-31T23:59:59.999Z#12345678"}, false},
		"a place before":              {before, cursor{Before: place + "#12345678"}, true},
		"newer than the list":         {before, cursor{Before: "2026-08-01T00:00:00.000Z#12345678"}, false},
		"NUL":                         {after, cursor{Before: "\x00"}, false},
		"NUL at its end":              {after, cursor{Before: place + "\x00"}, false},
		"a C1 control":                {after, cursor{Before: place + "\u0085"}, false},
		"over the quota of keys":      {after, cursor{Before: strings.Repeat("x", 1025)}, false},
		"by attention, in no such":    {after, cursor{Before: place, Key: "i#a"}, false},
		"by attention":                {blocked, cursor{Before: place, Key: "i#a"}, true},
		"of an earlier release":       {blocked, cursor{Before: place + "#12345678"}, true},
		"by attention, no instance":   {blocked, cursor{Before: place, Key: "i#"}, false},
		"by attention, unknown kind":  {blocked, cursor{Before: place, Key: "x#a"}, false},
		"by attention, NUL":           {blocked, cursor{Before: place, Key: "i#\x00"}, false},
		"by attention, time with NUL": {blocked, cursor{Before: "\x00", Key: "i#a"}, false},
		"by attention, long ID":       {blocked, cursor{Before: place, Key: "i#" + strings.Repeat("x", 1025)}, false},
	} {
		c.at.Query = queryDigest(c.q)
		c.q.Cursor = c.at.String()
		if _, err := parseCursor(c.q); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		for _, wrong := range []string{"\n", "\r\n", "=", "\x00", " "} {
			q := c.q
			q.Cursor += wrong
			if _, err := parseCursor(q); err == nil {
				t.Errorf("%s: the cursor with the suffix %q is accepted", name, wrong)
			}
		}
	}
}

func TestQueryDigest_differentFilters_differ(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, q := range []provider.ListQuery{
		{},
		{Status: "a"},
		{Name: "a"},
		{Status: "a", Name: "b"},
		{Status: "ab"},
		{Name: "ab"},
		{StartedAfter: time.UnixMilli(1)},
		{StartedAfter: time.UnixMilli(2)},
		{Version: "a"},
		{Parent: "a"},
		{Version: "a", Parent: "a"},
		{StartedBefore: time.UnixMilli(1)},
		{StartedBefore: time.UnixMilli(2)},
		{Tags: map[string]string{"a": "b"}},
		{Tags: map[string]string{"b": "a"}},
		{Tags: map[string]string{"a": "b", "b": "a"}},
		{Tags: map[string]string{"a": ""}},
	} {
		if d := queryDigest(q); seen[d] {
			t.Errorf("%+v has the digest of another query", q)
		} else {
			seen[d] = true
		}
	}
}

// A list that was started in a release with fewer filters continues.
func TestQueryDigest_filtersOfEarlierReleases_isUnchanged(t *testing.T) {
	t.Parallel()
	q := provider.ListQuery{Status: "Running", Name: "order", StartedAfter: time.Unix(1, 0)}
	if got, want := queryDigest(q), table.Digest("Running", "order", "1970-01-01T00:00:01.000Z")[:12]; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCreatedKey_sortsByTimeAndIsUnique(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 999e6, time.FixedZone("", 3600))
	older := instances.CreatedKey(provider.Instance{InstanceID: "b", CreatedAt: at})
	newer := instances.CreatedKey(provider.Instance{InstanceID: "a", CreatedAt: at.Add(time.Millisecond)})
	same := instances.CreatedKey(provider.Instance{InstanceID: "a", CreatedAt: at})
	if older >= newer || older == same {
		t.Errorf("keys %q, %q, %q", older, newer, same)
	}
}

func TestDecodeInstance_damagedItem_isAnError(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(table.Item){
		"created": func(it table.Item) { it[table.AttrCreated] = table.Str("yesterday") },
		"updated": func(it table.Item) { delete(it, "updated") },
		"tags":    func(it table.Item) { it["tags"] = table.Str("{") },
	} {
		it, err := instances.Encode(provider.Instance{
			InstanceID: "a", CreatedAt: time.Unix(0, 0), Tags: map[string]string{"k": "v"},
		})
		if err != nil {
			t.Fatal(err)
		}
		damage(it)
		if _, err := instances.Decode(it); err == nil {
			t.Errorf("an item with an invalid %s is decoded", name)
		}
	}
}
