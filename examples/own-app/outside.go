package subscriptions

import (
	"context"
	"log/slog"
)

// Sandbox implements Bank and Mail for a trial. It only logs the calls.
type Sandbox struct{ Log *slog.Logger }

// Charge implements Bank.
func (s Sandbox) Charge(ctx context.Context, key string, cents int64) (string, error) {
	s.Log.InfoContext(ctx, "charged", "key", key, "cents", cents)
	return "sandbox/" + key, nil
}

// Send implements Mail.
func (s Sandbox) Send(ctx context.Context, to, text string) error {
	s.Log.InfoContext(ctx, "sent", "to", to, "text", text)
	return nil
}
