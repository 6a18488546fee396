package describe

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// The description of a failure contains the details of each cause, or the reason for which they are missing.
func TestFailureDetails_nestedCauses_areAllDescribed(t *testing.T) {
	t.Parallel()
	sealed := history.EncodedPayload{Codec: "kms", Data: []byte("x"), Bytes: 7}.Payload()
	f := &history.Failure{
		Type: "E1", Message: "m", Details: history.Payload(`{"code":51}`),
		Cause: &history.Failure{
			Type: "E2", Message: "n", DetailsOmitted: "they are too large",
			Cause: &history.Failure{Type: "E3", Details: sealed, Cause: &history.Failure{Type: "E4"}},
		},
	}
	status := strings.Join(strings.Fields(Status(client.Status{Failure: f})), " ")
	if want := `Failure E1: m details {"code":51} caused by E2: n details omitted: they are too large caused by E3 details 7 bytes, encoded by kms caused by E4`; !strings.Contains(status, want) {
		t.Errorf("the status is %s", status)
	}
	l := &EventLog{}
	if got := l.Detail(&history.Event{
		Kind: history.ActivityFailed, Error: f,
	}); got != `E1: m details {"code":51} caused by E2: n details omitted: they are too large caused by E3 details 7 bytes, encoded by kms caused by E4` {
		t.Errorf("the event is %s", got)
	}
}
