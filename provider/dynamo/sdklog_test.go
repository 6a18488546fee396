package dynamo_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aws/smithy-go/logging"

	"github.com/perdure/perdure/provider/dynamo"
)

func TestSDKLogger_warning_isLoggedAtDebugLevelOnly(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: `level=DEBUG msg="AWS SDK message" classification=WARN text="no checksum of 7"`,
		slog.LevelInfo:  "",
	} {
		var log bytes.Buffer
		l := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		dynamo.SDKLogger(l).Logf(logging.Warn, "no checksum of %d", 7)
		if got := log.String(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%v: %q", level, got)
		}
	}
}
