package dynamo

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// SDKLogger returns a logger for aws.Config.Logger that writes the SDK's messages to l at debug level. Without it, the
// SDK writes to standard error. It is safe for concurrent use if l is.
func SDKLogger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, v ...any) {
		l.Debug("AWS SDK message", "classification", string(c), "text", fmt.Sprintf(format, v...))
	})
}
