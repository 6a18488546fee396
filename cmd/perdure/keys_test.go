package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/hubadmin"
)

// onKeys runs a test with the tool on a hub without keys, in virtual time.
func onKeys(t *testing.T, test func(h *tool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		cloud := simaws.New(simaws.WithTable(simaws.TableConfig{Name: "orders", PartitionKey: "pk", SortKey: "sk"}))
		h.adminHub = &hubadmin.Admin{
			Config: dynamo.HubConfig{Name: "orders", Table: "orders"}, Table: cloud.Table, Now: time.Now,
		}
		if got, want := h.mustRun("keys", "add"), "key 1 added; it signs at once\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		test(h)
	})
}

func TestKeys_rotation_showsStatesWithoutSecrets(t *testing.T) {
	t.Parallel()
	onKeys(t, func(h *tool) {
		t := h.t
		const header = "KEY  STATE      CREATED               SIGNS FROM            USED UNTIL            PROBLEM\n"
		if got, want := h.mustRun("keys"), "KEY  STATE    CREATED               SIGNS FROM            USED UNTIL  PROBLEM\n"+
			"  1  signing  2000-01-01T00:00:00Z  2000-01-01T00:15:00Z\n"; got != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
		time.Sleep(time.Hour)
		if got, want := h.mustRun("keys", "add"), "key 2 added; it signs from 2000-01-01T01:15:00Z\n"; got != want {
			t.Errorf("printed %q, want %q", got, want)
		}
		time.Sleep(time.Hour)
		if got, want := h.mustRun("keys"), header+
			"  1  verifying  2000-01-01T00:00:00Z  2000-01-01T00:15:00Z  2000-01-30T01:15:00Z\n"+
			"  2  signing    2000-01-01T01:00:00Z  2000-01-01T01:15:00Z\n"; got != want {
			t.Errorf("printed\n%s\nwant\n%s", got, want)
		}
		var listed struct {
			Keys []map[string]any `json:"keys"`
		}
		if err := json.Unmarshal([]byte(h.mustRun("keys", "--json")), &listed); err != nil || len(listed.Keys) != 2 {
			t.Fatalf("printed %+v, %v", listed, err)
		}
		fields := []string{"number", "item", "state", "createdAt", "signsFrom", "usedUntil"}
		for _, k := range listed.Keys {
			for name := range k {
				if !slices.Contains(fields, name) {
					t.Errorf("printed the field %s", name)
				}
			}
		}
	})
}

func TestKeys_itemIsNotAKey_showsItsProblem(t *testing.T) {
	t.Parallel()
	onKeys(t, func(h *tool) {
		t := h.t
		if _, err := h.adminHub.Table.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: &h.adminHub.Config.Table, Item: map[string]types.AttributeValue{
				"pk": &types.AttributeValueMemberS{Value: "hub"}, "sk": &types.AttributeValueMemberS{Value: "key#0000000002"},
				"secret": &types.AttributeValueMemberS{Value: "c2hvcnQ="},
			},
		}); err != nil {
			t.Fatal(err)
		}
		var added hubadmin.SigningKey
		if err := json.Unmarshal([]byte(h.mustRun("keys", "add", "--json")), &added); err != nil || added.Number != 3 ||
			added.State != hubadmin.KeyNew {
			t.Errorf("added %+v, %v", added, err)
		}
		var listed struct {
			Keys []hubadmin.SigningKey `json:"keys"`
		}
		const problem = "the secret has 5 bytes, at least 32 are required"
		if err := json.Unmarshal([]byte(h.mustRun("keys", "--json")), &listed); err != nil || len(listed.Keys) != 3 {
			t.Fatalf("printed %+v, %v", listed, err)
		}
		if k := listed.Keys[1]; k.State != hubadmin.KeyInvalid || k.Problem != problem {
			t.Errorf("got %+v", k)
		}
		if got := h.mustRun("keys"); !strings.Contains(got, problem) {
			t.Errorf("printed\n%s", got)
		}
	})
}

func TestKeysRemove_keyInUse_requiresForce(t *testing.T) {
	t.Parallel()
	onKeys(t, func(h *tool) {
		t := h.t
		remove := func(args ...string) []string { return append([]string{"keys", "remove"}, args...) }
		h.wantError(cli.CodeError, "missing argument NUMBER", remove()...)
		h.wantError(cli.CodeError, `NUMBER must be positive, is "first"`, remove("first")...)
		h.wantError(cli.CodeError, "key 2 not found; run perdure keys", remove("2", "--yes")...)
		h.wantError(cli.CodeError, "it is the newest key; add another one first", remove("1", "--yes", "--force")...)
		h.mustRun("keys", "add")
		h.wantError(cli.CodeError, "until 2000-01-30T00:15:00Z; --force removes a key that has leaked",
			remove("1", "--yes")...)

		h.in = "no\n"
		if code := h.run(t.Context(), remove("1", "--force")...); code != cli.CodeError ||
			!strings.Contains(h.err.String(), "tokens of key 1 become invalid") ||
			!strings.Contains(h.err.String(), "nothing was changed") {
			t.Errorf("exit %d: %s", code, h.err.String())
		}
		h.in = "yes\n"
		if got := h.mustRun(remove("1", "--force", "--json")...); got != `{"removed":1}`+"\n" {
			t.Errorf("printed %q", got)
		}
		if got := h.mustRun("keys"); strings.Contains(got, "\n  1") || !strings.Contains(got, "\n  2  signing") {
			t.Errorf("printed %s", got)
		}
	})
}
