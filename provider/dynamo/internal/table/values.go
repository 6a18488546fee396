package table

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TimeFormat has a fixed width, so that texts sort by time.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// FormatTime returns a time as text that sorts by time.
func FormatTime(t time.Time) string { return t.UTC().Format(TimeFormat) }

// DecodeTime returns a time of an instance, or zero if it has none.
func DecodeTime(it Item, name string) (at time.Time, err error) {
	if text := GetString(it, name); text != "" {
		at, err = time.Parse(TimeFormat, text)
	}
	if err != nil {
		err = fmt.Errorf("dynamo: item %q: %s: %w", GetString(it, AttrPK), name, err)
	}
	return at, err
}

// Unix returns a time as a TTL.
func Unix(t time.Time) types.AttributeValue { return Num(t.Unix()) }
