package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// attrMark holds the position as JSON.
const attrMark = "mark"

// readMark reads the position of a duty. If there is none, or none that this release can read, it leaves into
// unchanged, and the duty starts from the beginning.
func (p *Provider) readMark(ctx context.Context, duty string, into any) error {
	it, err := p.table.Get(ctx, "", table.SweepPositionKey(duty), provider.Eventual)
	if at := table.GetString(it, attrMark); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			p.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", duty, "error", err)
		}
	}
	return err
}

// putMark stores the position of a duty. If two sweeps are concurrent, the last write counts, and instances that the
// other one has processed since are checked again.
func (p *Provider) putMark(ctx context.Context, duty string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", duty, err)
	}
	it := table.SweepPositionKey(duty)
	it[attrMark] = table.Str(string(at))
	return p.table.Put(ctx, "", &dynamodb.PutItemInput{Item: it})
}
