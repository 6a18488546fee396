package instances

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// FuzzDecode checks that the item of an instance is rejected with an error that names the instance, or that its
// encoding is decoded unchanged. others is a JSON object of further attributes.
func FuzzDecode(f *testing.F) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 5e6, time.UTC)
	it, err := Encode(provider.Instance{
		InstanceID: "order-7", Name: "fulfil", Status: provider.StatusRunning, CreatedAt: at, UpdatedAt: at,
		StartAt: at, Tags: map[string]string{"team": "a"},
		Parent: &history.Parent{InstanceID: "p", ExecutionID: "x", EventID: 7},
	})
	if err != nil {
		f.Fatal(err)
	}
	attribute := func(name string) string { return table.GetString(it, name) }
	f.Add(attribute(table.AttrPK), attribute(table.AttrCreated), attribute(table.AttrUpdated),
		attribute(table.AttrStartAt), attribute(table.AttrParent), attribute("tags"),
		`{"diagnosis":"{\"type\":\"t\"}","paused":"{\"by\":\"me\"}","notes":"[{\"text\":\"n\"}]","status":"Blocked"}`)
	f.Add("", "", "", "", "", "", "")
	f.Add("i#a", "2026-01-02T12:00:00.005Z#1", "2026-01-02", "x", "[]", "null", `{"status":"Pending","notes":"{"}`)
	f.Fuzz(func(t *testing.T, pk, created, updated, startAt, parent, tags, others string) {
		it := table.Item{
			table.AttrPK: table.Str(pk), table.AttrCreated: table.Str(created), table.AttrUpdated: table.Str(updated),
			table.AttrStartAt: table.Str(startAt), table.AttrParent: table.Str(parent), "tags": table.Str(tags),
		}
		var more map[string]string
		if json.Unmarshal([]byte(others), &more) == nil {
			for name, value := range more {
				it[name] = table.Str(value)
			}
		}
		in, err := Decode(it)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "dynamo: ") {
				t.Errorf("error without its package: %v", err)
			}
			return
		}
		HasTags(it, map[string]string{"team": "a"}) // must not panic
		again, err := Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(again)
		if err != nil {
			t.Fatalf("%+v: %v", again, err)
		}
		want := provider.Instance{ // the attributes that Encode writes
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ExecutionNumber: in.ExecutionNumber, Name: in.Name,
			Version: in.Version, Status: in.Status, StartID: in.StartID, RequestedBy: in.RequestedBy,
			CreatedAt: in.CreatedAt, UpdatedAt: in.UpdatedAt, StartAt: in.StartAt, Parent: in.Parent, Tags: got.Tags,
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got.Tags) != len(in.Tags) {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
