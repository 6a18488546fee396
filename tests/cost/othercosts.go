package cost

import (
	"fmt"
	"io"
	"strconv"

	"github.com/perdure/perdure/internal/pricing"
)

// OtherCost is a row of costs that the bills of instances do not include, such as the cost of an idle queue. No
// emulator measures these costs. They are calculated from the basis in Because.
type OtherCost struct {
	What    string  `json:"what"`
	Per     string  `json:"per"`
	Least   float64 `json:"least"` // dollars
	Most    float64 `json:"most"`
	Because string  `json:"because"`
}

// Quantities for the calculation of the rows.
const (
	// An idle mapping has five pollers, each with a wait time of 20 s. After a busy time it has up to five times as
	// many.
	leastReceives, mostReceives = 15, 75
	minutesAMonth               = 30 * 24 * 60
	// SweepReads is the number of read units of a sweep that finds no work.
	SweepReads = 77
	// SweepRequests is the number of SQS requests of a sweep that finds no work.
	SweepRequests   = 4
	minutesOfASweep = 2
	// alarmMetrics is the number of metrics in the alarms of a hub with one work queue (infra/cdk/README.md).
	alarmMetrics = 33
	// platformLines is the size of the START, END and REPORT lines of an invocation, in bytes of JSON.
	platformLines = 1000
	// metricLines is the size of the metric lines by hub for each activity of a fan-out of five, in bytes
	// (BenchmarkFanOf5Observed).
	metricLines = 1067.0 / 5
	// requestLine is the size of the API function's log line for a request, and operationLine the size of the second
	// line for a change, in bytes.
	requestLine, operationLine = 165, 200
	// pollsASecond is the number of times per second that a worker reads the cancel record. One of these reads is
	// strongly consistent.
	pollsASecond = 4
	// WatchPolls are the polls of an hour of client.Follow without a commit, 0.5 to 1 s apart. WatchReads are the read
	// units of a poll: one eventually consistent query without a result.
	WatchPolls = 3600 / 0.75
	WatchReads = 0.5
	// watchRequests are the long polls of an hour, each as long as the API permits. resumeReads are the read units
	// with which a request finds its place: the instance, and the first and the last turn.
	watchRequests, resumeReads = 3600 / 20, 3
	// longPolls are the polls of an hour of long polls, each of which starts with short delays.
	longPolls = 7200
)

// watching returns the dollars for 1,000 hours of watching an idle instance, with the Go client and over HTTP.
func watching(l *pricing.List) (direct, overHTTP float64) {
	const thousand, secondsAnHour = 1000, 3600
	direct = l.Of(pricing.ReadUnits, thousand*WatchPolls*WatchReads)
	overHTTP = l.Of(pricing.ReadUnits, thousand*(longPolls*WatchReads+watchRequests*resumeReads)) +
		l.Of(pricing.GBSeconds, thousand*secondsAnHour*Memory[Worker]) +
		l.Of(pricing.HTTPRequests, thousand*watchRequests) + l.Of(pricing.Invocations, thousand*watchRequests) +
		l.Of(pricing.LogBytes, thousand*watchRequests*requestLine)
	return direct, overHTTP
}

// OtherCosts returns the rows of docs/operate/cost.md that are not building blocks.
func OtherCosts(l *pricing.List) []OtherCost {
	idle := func(queue string, i pricing.Item) OtherCost {
		return OtherCost{
			What: "idle " + queue + " queue", Per: "month",
			Least: l.Of(i, leastReceives*minutesAMonth), Most: l.Of(i, mostReceives*minutesAMonth),
			Because: fmt.Sprintf("%d to %d empty receives a minute", leastReceives, mostReceives),
		}
	}
	exact := func(what, per string, dollars float64, because string) OtherCost {
		return OtherCost{What: what, Per: per, Least: dollars, Most: dollars, Because: because}
	}
	const sweeps, polls = minutesAMonth / minutesOfASweep, 1 + (pollsASecond-1)*0.5
	sweep := pricing.Usage{
		pricing.ReadUnits: SweepReads * sweeps, pricing.StandardRequests: SweepRequests * sweeps,
		pricing.Invocations: sweeps,
	}.Dollars(l)
	request := l.Of(pricing.HTTPRequests, million) + l.Of(pricing.Invocations, million) +
		l.Of(pricing.GBSeconds, million*Memory[Worker]*startSeconds) + l.Of(pricing.LogBytes, requestLine*million)
	watched, overHTTP := watching(l)
	return []OtherCost{
		idle("FIFO", pricing.FIFORequests), idle("standard", pricing.StandardRequests),
		exact("sweeper", "month", sweep,
			fmt.Sprintf("%d read units, %d SQS requests every 2 minutes", SweepReads, SweepRequests)),
		exact("alarms, one work queue", "month", l.Of(pricing.AlarmMetrics, alarmMetrics),
			fmt.Sprintf("%d metrics", alarmMetrics)),
		exact("dashboard", "month", l.Of(pricing.Dashboards, 1), "one for a hub"),
		exact("storage", "GB-month", l.Of(pricing.StoredGigabytes, 1)+l.Of(pricing.BackupGigabytes, 1),
			"table, point-in-time recovery"),
		{
			What: "request over HTTP", Per: "million",
			Least: request, Most: request + l.Of(pricing.LogBytes, operationLine*million),
			Because: "API request, 30 ms at 256 MB, one or two log lines",
		},
		{
			What: "watching an idle instance", Per: "1,000 hours",
			Least: watched, Most: overHTTP,
			Because: fmt.Sprintf("%.0f polls an hour; over HTTP also Lambda's time at 256 MB", float64(WatchPolls)),
		},
		exact("run time of activities", "million s", l.Of(pricing.GBSeconds, million*Memory[Worker]), "at 256 MB"),
		exact("run time of inline activities", "million s",
			l.Of(pricing.GBSeconds, million*Memory[Orchestrator]), "at 512 MB"),
		{
			What: "cancel polls of a worker", Per: "million s",
			Least: l.Of(pricing.ReadUnits, million), Most: l.Of(pricing.ReadUnits, polls*million),
			Because: fmt.Sprintf("1 to %.1f read units a second, per orchestration instance", polls),
		},
		{
			What: "Lambda's own log lines", Per: "million invocations",
			Least: 0, Most: l.Of(pricing.LogBytes, platformLines*million),
			Because: "off in the stack (WARN)",
		},
		{
			What: "metric lines by hub", Per: "million activities",
			Least: 0, Most: l.Of(pricing.LogBytes, metricLines*million),
			Because: "off by default",
		},
	}
}

// startSeconds is the duration of a start in the API function, in seconds: two writes and a send.
const startSeconds = 0.03

// WriteUnitPrices writes the unit prices of a list as one line of Markdown, in dollars per million or per gigabyte.
func WriteUnitPrices(w io.Writer, l *pricing.List) error {
	m := func(i pricing.Item) string { return fmt.Sprintf("%.2f", l.Of(i, million)) }
	exact := func(i pricing.Item) string { return strconv.FormatFloat(l.Of(i, million), 'f', -1, 64) }
	_, err := fmt.Fprintf(w, "Unit prices of %s on %s, per million: DynamoDB write unit %s, read unit %s. "+
		"SQS request %s, FIFO %s. Lambda invocation %s, GB-second (arm64) %s. Schedule %s, HTTP API request %s. "+
		"S3 write or copy %s, read %s. Per GB: logs %.2f; a month of DynamoDB %.2f, backup %.2f, S3 %.3f.\n",
		l.Region, l.AsOf, exact(pricing.WriteUnits), exact(pricing.ReadUnits),
		m(pricing.StandardRequests), m(pricing.FIFORequests), m(pricing.Invocations), m(pricing.GBSeconds),
		m(pricing.ScheduleInvocations), m(pricing.HTTPRequests), m(pricing.ObjectWrites), m(pricing.ObjectReads),
		l.Of(pricing.LogBytes, 1e9), l.Of(pricing.StoredGigabytes, 1), l.Of(pricing.BackupGigabytes, 1),
		l.Of(pricing.ObjectGigabytes, 1))
	if err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	return nil
}

// WriteOtherCosts writes the rows as a table in Markdown.
func WriteOtherCosts(w io.Writer, rows []OtherCost) error {
	if _, err := fmt.Fprint(w, "| item | per | dollars | basis |\n|---|---|--:|---|\n"); err != nil {
		return fmt.Errorf("cost: %w", err)
	}
	for _, r := range rows {
		price := fmt.Sprintf("%.2f", r.Most)
		if r.Least != r.Most {
			price = fmt.Sprintf("%.2f to %.2f", r.Least, r.Most)
		}
		if _, err := fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.What, r.Per, price, r.Because); err != nil {
			return fmt.Errorf("cost: %w", err)
		}
	}
	return nil
}
