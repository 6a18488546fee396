package dynamo

import (
	"fmt"
	"log/slog"

	"github.com/aws/smithy-go/logging"
)

// SDKLogger has the AWS SDK log to l, at debug level, whatever it thinks of it: what matters it returns as an error, and what it warns
// of besides, as of a connection that the other side has closed early, needs nobody. Left alone it writes lines of its own to standard
// error. It is for aws.Config.Logger, and safe for concurrent use where l is.
func SDKLogger(l *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(c logging.Classification, format string, v ...any) {
		l.Debug("the AWS SDK says: "+fmt.Sprintf(format, v...), "classification", string(c))
	})
}
