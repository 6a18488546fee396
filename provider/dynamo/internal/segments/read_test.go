package segments

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// fakeHistory returns its items to queries. The first torn queries omit the last item.
type fakeHistory struct {
	table.API

	items  []table.Item
	torn   int
	strong []bool
}

func (h *fakeHistory) Query(
	_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	h.strong = append(h.strong, aws.ToBool(in.ConsistentRead))
	items := h.items
	if len(h.strong) <= h.torn {
		items = items[:len(items)-1]
	}
	out := &dynamodb.QueryOutput{Items: append([]table.Item(nil), items...)}
	if !aws.ToBool(in.ScanIndexForward) && in.ScanIndexForward != nil {
		for i, it := range items {
			out.Items[len(items)-1-i] = it
		}
	}
	return out, nil
}

// endedIn returns a history of one segment of several parts, which ends the execution.
func endedIn(t *testing.T) []table.Item {
	t.Helper()
	s := segmentOf(0, 2*table.PartLimit, false)
	s.Events[0].Kind, s.Events[0].Output, s.Events[0].Value = history.OrchestrationCompleted, s.Events[0].Value, nil
	items := encoded(t, s)
	items[0][table.AttrInstance] = table.Str("a")
	return items
}

// R8: a query may return half of a transaction for a moment. An eventually consistent read is then repeated as a strong
// one.
func TestReadExecution_tornRead_isReadAgainWithStrongConsistency(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		torn  int
		reads string
		err   error
	}{
		"whole":             {0, "e", nil},
		"torn once":         {1, "es", nil},
		"torn twice":        {table.MaxReadTries - 1, "ess", nil},
		"torn in each read": {1000, "ess", provider.ErrCorrupt},
	} {
		h := &fakeHistory{items: endedIn(t), torn: c.torn}
		st := newStore(h)
		o, err := st.ReadExecution(t.Context(), "a", "X", provider.Eventual)
		var reads strings.Builder
		for _, strong := range h.strong {
			reads.WriteString(map[bool]string{false: "e", true: "s"}[strong])
		}
		if !errors.Is(err, c.err) || reads.String() != c.reads || len(h.strong) > table.MaxReadTries {
			t.Errorf("%s: reads %s, error %v", name, reads.String(), err)
		}
		if err == nil && o.Verified != (c.torn > 0) {
			t.Errorf("%s: verified %v", name, o.Verified)
		}
	}
}

func newStore(h *fakeHistory) *Store { return New(table.New(h, "t"), nil, nil, Config{}) }

func TestReadTerminalEvent_tornRead_isReadAgain(t *testing.T) {
	t.Parallel()
	for torn, want := range map[int]error{0: nil, 1: nil, table.MaxReadTries - 1: nil, 1000: provider.ErrCorrupt} {
		h := &fakeHistory{items: endedIn(t), torn: torn}
		end, err := newStore(h).ReadTerminalEvent(t.Context(), "X")
		if !errors.Is(err, want) || (err == nil) != (want == nil) || len(h.strong) != min(torn+1, table.MaxReadTries) {
			t.Errorf("torn %d times: %d reads, %s, %v", torn, len(h.strong), end.Kind, err)
		}
		if err != nil && !strings.Contains(err.Error(), "X") {
			t.Errorf("the error does not name the execution: %v", err)
		}
	}
}
