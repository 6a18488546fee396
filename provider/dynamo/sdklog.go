package dynamo

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// SDKLogger makes the AWS SDK log to l, always at debug level: the SDK returns what matters as an error, and its other
// warnings, such as of a connection that the other side has closed early, require no action. Without a logger it writes
// its own lines to standard error. SDKLogger is for aws.Config.Logger, and safe for concurrent use where l is.
func SDKLogger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, v ...any) {
		l.Debug("AWS SDK message", "classification", string(c), "text", fmt.Sprintf(format, v...))
	})
}
