package lambdahandler

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// Log records of activity code contain each ID of the activity once. Other records are unchanged.
func TestLog_activityCode_addsIDs(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(withIDs{Handler: slog.NewJSONHandler(&b, nil)})
	ctx := perduretest.ContextWithActivityInfo(t.Context(), perdure.ActivityInfo{
		InstanceID: "order-7", ExecutionID: "01J", ActivityID: 3, Name: "charge", Attempt: 2,
	})
	ids := map[string]any{
		"activity": "charge", "instance": "order-7", "execution": "01J", "activityId": 3.0, "attempt": 2.0,
	}
	for _, c := range []struct {
		write func()
		want  map[string]any
	}{
		{func() { log.InfoContext(ctx, "declined") }, ids},
		{func() { log.With("a", "b").InfoContext(ctx, "declined") }, map[string]any{"a": "b"}},
		{func() { log.With("instance", "other").InfoContext(ctx, "declined") }, map[string]any{"instance": "other"}},
		{func() { log.InfoContext(t.Context(), "declined") }, map[string]any{}},
	} {
		b.Reset()
		c.write()
		var got map[string]any
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "time")
		delete(got, "level")
		delete(got, "msg")
		if c.want["a"] != nil {
			maps.Copy(c.want, ids)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("mismatch (-want +got):\n%s", diff)
		}
	}
}
