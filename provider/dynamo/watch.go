package dynamo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/logevent"
)

// skWatch is the prefix of the sort keys of the items that store the progress of the sweeper's duties. The key without
// a suffix belongs to earlier releases, which had one position for all duties.
const skWatch = "watch"

// attrMark holds the position as JSON.
const attrMark = "mark"

func watchKey(duty string) item { return item{attrPK: str(pkHub), attrSK: str(skWatch + "#" + duty)} }

// readMark reads the position of a duty. If there is none, or none that this release can read, it leaves into
// unchanged, and the duty starts from the beginning.
func (p *Provider) readMark(ctx context.Context, duty string, into any) error {
	it, err := p.getWatchItem(ctx, watchKey(duty))
	if at := getString(it, attrMark); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			p.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", duty, "error", err)
		}
	}
	return err
}

func (p *Provider) getWatchItem(ctx context.Context, key item) (item, error) {
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", "", func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: key})
		return err
	})
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// putMark stores the position of a duty. If two sweeps are concurrent, the last write counts, and instances that the
// other one has processed since are checked again.
func (p *Provider) putMark(ctx context.Context, duty string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", duty, err)
	}
	it := watchKey(duty)
	it[attrMark] = str(string(at))
	return call(ctx, "DynamoDB.PutItem", "", func() error {
		_, err := p.table.PutItem(ctx, &dynamodb.PutItemInput{TableName: &p.hub.Table, Item: it})
		return err
	})
}
