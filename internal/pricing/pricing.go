// Package pricing contains a list of AWS prices, with its date and its sources. It makes no calls.
package pricing

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Item is the name of a billed item in the price list.
type Item string

// The items of the price list.
const (
	WriteUnits          Item = "dynamodb.write"
	ReadUnits           Item = "dynamodb.read"
	StandardRequests    Item = "sqs.standard"
	FIFORequests        Item = "sqs.fifo"
	Invocations         Item = "lambda.requests"
	GBSeconds           Item = "lambda.gbSeconds"
	ScheduleInvocations Item = "scheduler.invocations"
	HTTPRequests        Item = "http.requests"
	ObjectWrites        Item = "s3.write"
	ObjectReads         Item = "s3.read"
	LogBytes            Item = "logs.bytes"
	StoredGigabytes     Item = "dynamodb.storage"
	BackupGigabytes     Item = "dynamodb.backup"
	ObjectGigabytes     Item = "s3.storage"
	AlarmMetrics        Item = "cloudwatch.alarms"
)

// Price is the price of an item.
type Price struct {
	Dollars float64 `json:"dollars"` // for the quantity Per
	Per     float64 `json:"per"`
	What    string  `json:"what"`
	Source  string  `json:"source"`
}

// List contains the prices of a region on a day.
type List struct {
	Region string         `json:"region"`
	AsOf   string         `json:"asOf"`
	Note   string         `json:"note"`
	Prices map[Item]Price `json:"prices"`
}

//go:embed us-east-1.json
var usEast1 []byte

// current parses the price list at the first use, because most programs with a client never use it.
var current = sync.OnceValue(func() *List {
	l := read(usEast1)
	return &l
})

// Current returns the price list of this build.
func Current() *List { return current() }

func read(file []byte) (l List) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		panic(fmt.Sprintf("pricing: read the price list: %v", err)) // a test reads it
	}
	return l
}

// Known reports whether the list contains an item.
func (l *List) Known(i Item) bool {
	_, ok := l.Prices[i]
	return ok
}

// Of returns the price of a quantity of an item, in dollars. It returns 0 if the list does not contain the item.
func (l *List) Of(i Item, quantity float64) float64 {
	p, ok := l.Prices[i]
	if !ok {
		return 0
	}
	return quantity * p.Dollars / p.Per
}

// Usage is the quantity used of each item.
type Usage map[Item]float64

// Add adds another usage, multiplied by times.
func (u Usage) Add(other Usage, times float64) {
	for i, n := range other {
		u[i] += n * times
	}
}

// Items returns the used items in sorted order.
func (u Usage) Items() []Item { return slices.Sorted(maps.Keys(u)) }

// Dollars returns the price of a usage by the list l.
func (u Usage) Dollars(l *List) (sum float64) {
	for _, i := range u.Items() { // in sorted order, so that equal usage has an equal sum
		sum += l.Of(i, u[i])
	}
	return sum
}
