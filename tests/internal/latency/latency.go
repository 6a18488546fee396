// Package latency contains a list of the measured durations of AWS calls, with their sources. It delays the calls of a
// simaws.Cloud by these durations in virtual time.
package latency

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Distribution is the distribution of the duration of a call, as percentiles in milliseconds. P10 and P90 are optional.
type Distribution struct {
	P10    float64 `json:"p10"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Source string  `json:"source"`
}

// List holds distributions by the name of a call, such as "DynamoDB.PutItem". If the duration depends on the kind of
// the queue, the name ends with that kind.
type List struct {
	AsOf  string                  `json:"asOf"`
	Note  string                  `json:"note"`
	Calls map[string]Distribution `json:"calls"`
}

//go:embed latencies.json
var file []byte

var current = read(file)

// Current returns the list that is embedded in this build.
func Current() *List { return &current }

func read(file []byte) (l List) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		panic(fmt.Sprintf("latency: the list cannot be read: %v", err)) // a test reads it
	}
	return l
}

// Normal quantiles of the percentiles. Distributions end at zMost, the 99.9th percentile.
const (
	z10, z90, z99 = -1.2816, 1.2816, 2.3263
	zMost         = 3.0902
)

// At returns the quantile at z, a value of the standard normal distribution.
func (d *Distribution) At(z float64) time.Duration {
	z = max(-zMost, min(z, zMost))
	type point struct{ z, ms float64 }
	points := make([]point, 0, 4)
	if d.P10 > 0 {
		points = append(points, point{z10, d.P10})
	}
	points = append(points, point{0, d.P50})
	if d.P90 > 0 {
		points = append(points, point{z90, d.P90})
	}
	points = append(points, point{z99, d.P99})
	at := 0
	for at < len(points)-2 && z > points[at+1].z {
		at++
	}
	a, b := points[at], points[at+1]
	slope := (math.Log(b.ms) - math.Log(a.ms)) / (b.z - a.z)
	return time.Duration(math.Exp(math.Log(a.ms)+slope*(z-a.z)) * float64(time.Millisecond))
}

// Mean returns the mean of the distribution.
func (d *Distribution) Mean() time.Duration {
	const steps = 2000
	sum, weights := 0.0, 0.0
	for i := range steps {
		z := -zMost + 2*zMost*(float64(i)+0.5)/steps
		w := math.Exp(-z * z / 2)
		sum += w * float64(d.At(z))
		weights += w
	}
	return time.Duration(sum / weights)
}
