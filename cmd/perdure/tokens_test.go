package main

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/fakeprovider"
	"github.com/perdure/perdure/provider"
)

// holds returns a tool whose hub has issued the token c1.t to a pending activity of the instance order-7.
func holds(t *testing.T) *tool {
	t.Helper()
	h := setup(t)
	h.mustRun("start", "fulfil", "--id", "order-7")
	h.Append("order-7", history.Event{
		Kind: history.ActivityScheduled, Time: time.Unix(1, 0), Name: "ask", Queue: "default",
	})
	in, err := h.ReadInstance(t.Context(), "order-7")
	if err != nil {
		t.Fatal(err)
	}
	h.SetCompletionToken("c1.t", &provider.WorkItem{
		InstanceID: "order-7", ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 2, Attempt: 1, Queue: "default",
	})
	return h
}

func TestComplete_token_sendsResult(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want, sent string
		args           []string
	}{
		{"", "completed\n", `{"ok":true}`, []string{"complete", "c1.t", "--result", `{"ok":true}`}},
		{" c1.t\n", "completed\n", `null`, []string{"complete", "-"}},
		{`[1]`, "completed\n", `[1]`, []string{"complete", "c1.t", "--result", "-"}},
		{"c1.t", "{}\n", `null`, []string{"complete", "-", "--json"}},
	} {
		h := holds(t)
		h.in = c.in
		if got := h.mustRun(c.args...); got != c.want {
			t.Errorf("%q prints %q", c.args, got)
		}
		sent := h.Sent()
		if o := sent[len(sent)-1].Outcomes; len(o) != 1 || string(o[0].Result) != c.sent || o[0].ActivityID != 2 {
			t.Errorf("%q sends %+v", c.args, o)
		}
	}
}

func TestFail_token_sendsError(t *testing.T) {
	t.Parallel()
	h := holds(t)
	if got := h.mustRun("fail", "c1.t", "--type", "Declined", "--message", "no funds", "--non-retryable", "--details",
		`{"code":51}`); got != "failed\n" {
		t.Errorf("prints %q", got)
	}
	sent := h.Sent()
	if f := sent[len(sent)-1].Outcomes[0].Error; f == nil || f.Type != "Declined" || f.Message != "no funds" ||
		!f.NonRetryable || string(f.Details) != `{"code":51}` {
		t.Errorf("%+v", f)
	}
	h.wantError(cli.CodeError, "--message is required", "fail", "c1.t")
}

func TestHeartbeat_cancelledActivity_printsCancellation(t *testing.T) {
	t.Parallel()
	h := holds(t)
	if got := h.mustRun("heartbeat", "c1.t", "--details", `{"page":7}`); got != "continue\n" {
		t.Errorf("prints %q", got)
	}
	h.Append("order-7", history.Event{
		Kind: history.ActivityCancelRequested, Time: time.Unix(2, 0), SourceEventID: 2, Reason: "requested",
		Message: "enough",
	})
	if got := h.mustRun("heartbeat", "c1.t"); got != "cancelled: requested enough\n" {
		t.Errorf("prints %q", got)
	}
	if got := h.mustRun("heartbeat", "c1.t",
		"--json"); got != `{"cancel":{"reason":"requested","message":"enough","requestedAt":"1970-01-01T00:00:02Z"}}`+
		"\n" {
		t.Errorf("prints %q", got)
	}
}

func TestTokenCommands_invalidToken_isAnError(t *testing.T) {
	t.Parallel()
	h := holds(t)
	for _, verb := range [][]string{{"complete"}, {"fail", "--message", "m"}, {"heartbeat"}} {
		h.wantError(cli.CodeError, "was not issued by this hub", append(verb, "c1.wrong")...)
		h.wantError(cli.CodeError, `belongs to hub "foreign"`, append(verb, fakeprovider.ForeignToken)...)
		h.wantError(cli.CodeError, "missing argument TOKEN", verb...)
	}
	h.in = strings.Repeat("x", 100)
	h.wantError(cli.CodeError, "cannot both be read from stdin", "complete", "-", "--result", "-")
	h.wantError(cli.CodeError, "cannot both be read from stdin", "fail", "-", "--message", "m", "--details", "-")
	h.wantError(cli.CodeError, "cannot both be read from stdin", "heartbeat", "-", "--details", "-")
}
