package main

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

func TestUpdate_printsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			switch m.Name {
			case "lost":
				return &provider.UpdateResult{
					Outcome: provider.UpdateRejected, Reason: history.RejectedNoHandler,
					Error: &history.Failure{Message: `it has ["address"]`},
				}
			case "slow":
				return nil
			default:
				return &provider.UpdateResult{
					Outcome: provider.UpdateCompleted, Result: history.Payload(`{"with":` + string(m.Data) + `}`),
				}
			}
		})
		h.mustRun("start", "hello", "--id", "order-7")
		h.in = `{"from":"stdin"}`
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"update", "order-7", "address"}, `{"with":null}` + "\n"},
			{[]string{"update", "order-7", "address", `{"n":1}`}, `{"with":{"n":1}}` + "\n"},
			{[]string{"update", "order-7", "address", "-"}, `{"with":{"from":"stdin"}}` + "\n"},
			{[]string{"update", "order-7", "address", "1", "--update-id", "u-1"}, `{"with":1}` + "\n"},
			{[]string{"update", "order-7", "address", "2", "--update-id", "u-1"}, `{"with":1}` + "\n"},
			{
				[]string{"update", "order-7", "address", "2", "--update-id", "u-1", "--json"},
				`{"instanceId":"order-7","update":"address","updateId":"u-1","result":{"with":1}}` + "\n",
			},
		} {
			if got := h.mustRun(c.args...); got != c.want {
				t.Errorf("%v prints %s", c.args, got)
			}
		}
		h.wantError(cli.CodeError, `it has ["address"]`, "update", "order-7", "lost")
		h.wantError(cli.CodeTimeout, "to wait for it, run perdure update order-7 slow --update-id u-2", "update",
			"order-7", "slow", "--update-id", "u-2", "--timeout", "3s")
		h.wantError(cli.CodeError, "--timeout must not be negative, is -3s", "update", "order-7", "slow", "--timeout",
			"-3s")
		h.wantError(cli.CodeError, "expected 2 or 3 arguments", "update", "order-7")
		h.wantError(cli.CodeError, "expected 2 or 3 arguments", "update", "order-7", "a", "1", "2")
	})
}

// The command succeeds if it cannot decode the result of an update, and describes the encoded result.
func TestUpdate_encodedResult_isDescribed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		const key = "m/0123"
		results := map[string]history.EncodedPayload{
			"inline": {Codec: "orders-2026", Data: []byte("secret"), Bytes: 321},
			"stored": {Key: key, SHA256: "00", Bytes: 654321},
		}
		h.UpdateWith(func(m provider.Message) *provider.UpdateResult {
			return &provider.UpdateResult{Outcome: provider.UpdateCompleted, Result: results[m.Name].Payload()}
		})
		h.mustRun("start", "hello", "--id", "order-7")
		for _, c := range []struct{ update, flag, want string }{
			{
				"inline", "--json=false",
				describe.EncodedPayload(&client.EncodedPayload{Codec: "orders-2026", Bytes: 321}) + "\n",
			},
			{"stored", "--json=false", describe.EncodedPayload(&client.EncodedPayload{Key: key, Bytes: 654321}) + "\n"},
			{
				"inline", "--json",
				`{"instanceId":"order-7","update":"inline","updateId":"u-1","resultSealed":{"codec":"orders-2026","bytes":321}}` + "\n",
			},
			{
				"stored", "--json",
				`{"instanceId":"order-7","update":"stored","updateId":"u-1","resultSealed":{"key":"m/0123","bytes":654321}}` + "\n",
			},
		} {
			if got := h.mustRun("update", "order-7", c.update, "--update-id", "u-1-"+c.update,
				c.flag); strings.ReplaceAll(got, "u-1-"+c.update, "u-1") != c.want {
				t.Errorf("%s %s prints %s, want %s", c.update, c.flag, got, c.want)
			}
		}
	})
}
