package main

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/provider"
)

func TestQuery_printsResult(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.wantError(cli.CodeError, "no orchestrator function", "query", "order-7", "progress")
	h.SetQueryFunc(func(q provider.QueryRequest) (json.RawMessage, error) {
		if q.Name == "lost" {
			return nil, &provider.QueryError{
				InstanceID: q.InstanceID, Query: q.Name, Code: provider.QueryHandlerNotFound,
				Message: `its code has "progress"`, Known: []string{"progress"},
			}
		}
		return json.RawMessage(`{"with":` + string(q.Input) + `}`), nil
	})
	h.in = `{"from":"stdin"}`
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"query", "order-7", "progress"}, `{"with":null}` + "\n"},
		{[]string{"query", "order-7", "progress", `{"n":1}`}, `{"with":{"n":1}}` + "\n"},
		{[]string{"query", "order-7", "progress", "-"}, `{"with":{"from":"stdin"}}` + "\n"},
		{
			[]string{"query", "order-7", "progress", "--json"},
			`{"instanceId":"order-7","query":"progress","answer":{"with":null}}` + "\n",
		},
	} {
		if got := h.mustRun(c.args...); got != c.want {
			t.Errorf("%v prints %s", c.args, got)
		}
	}
	h.wantError(cli.CodeError, `its code has "progress"`, "query", "order-7", "lost")
	h.wantError(cli.CodeError, "expected 2 or 3 arguments", "query", "order-7")
	h.wantError(cli.CodeError, "expected 2 or 3 arguments", "query", "order-7", "a", "1", "2")
}
