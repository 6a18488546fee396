package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestCallAndState_entity_printResultAndState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			if m.Name == "slow" {
				return nil
			}
			return &provider.UpdateResult{
				Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
			}
		})
		h.SetQueryFunc(func(q provider.QueryRequest) (json.RawMessage, error) {
			if q.InstanceID == "@account@bob" {
				return json.RawMessage("null"), nil
			}
			return json.RawMessage(`{"total":7}`), nil
		})
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"call", "account", "ann", "deposit"}, `{"with":null}` + "\n"},
			{[]string{"call", "account", "ann", "deposit", "7", "--update-id", "u-1"}, `{"with":7}` + "\n"},
			{
				[]string{"call", "account", "ann", "deposit", "8", "--update-id", "u-1", "--json"},
				`{"instanceId":"@account@ann","update":"deposit","updateId":"u-1","result":{"with":7}}` + "\n",
			},
			{[]string{"state", "account", "ann"}, `{"total":7}` + "\n"},
			{
				[]string{"state", "account", "ann", "--json"},
				`{"entity":"account","key":"ann","instanceId":"@account@ann","state":{"total":7}}` + "\n",
			},
		} {
			if got := h.mustRun(c.args...); got != c.want {
				t.Errorf("%v prints %s", c.args, got)
			}
		}
		h.wantError(cli.CodeTimeout, "to wait for it, run perdure update @account@ann slow --update-id u-2", "call",
			"account", "ann", "slow", "--update-id", "u-2", "--timeout", "3s")
		h.wantError(cli.CodeError, "expected 3 or 4 arguments", "call", "account", "ann")
		h.wantError(cli.CodeError, "expected 2 arguments", "state", "account")
		h.wantError(cli.CodeError, `key of entity "account" not found`, "state", "account", "bob")
		h.wantError(cli.CodeError, `has entity "acount"; check the spelling`, "call", "acount", "ann", "deposit", "50")
	})
}
