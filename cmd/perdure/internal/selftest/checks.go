package selftest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/provider/dynamo"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	// Holds means that the account behaves as assumed.
	Holds Verdict = "holds"
	// Differs means that the account behaves differently.
	Differs Verdict = "differs"
	// NotShown means that the check could not decide.
	NotShown Verdict = "not shown"
)

// CheckResult is the result of a check of assumptions about AWS.
type CheckResult struct {
	// Check is the name of the check in docs/internals/aws-assumptions.md. Assumptions are IDs of its entries.
	Check       string   `json:"check"`
	Assumptions []string `json:"assumptions"`
	Verdict     Verdict  `json:"verdict"`
	// Detail is the observation.
	Detail string `json:"detail,omitempty"`
}

// runChecks runs checks one after the other. A short run omits the slow ones.
func (h *hub) runChecks(ctx context.Context, all []probes.Check, short bool) (results []CheckResult) {
	for _, c := range all {
		if c.Slow && short {
			continue
		}
		r := CheckResult{Check: c.Name, Assumptions: c.Assumptions, Verdict: Holds}
		detail, err := c.Run(ctx)
		r.Detail = detail
		if err != nil {
			r.Verdict, r.Detail = Differs, err.Error()
			if _, ok := errors.AsType[*probes.UndecidedError](err); ok || ctx.Err() != nil {
				r.Verdict = NotShown
			}
		}
		h.printf("%-9s %s %s", r.Verdict, r.Check, r.Detail)
		results = append(results, r)
	}
	return results
}

// assumptionCount is the number of entries in docs/internals/aws-assumptions.md.
const assumptionCount = 129

// unchecked returns the number of assumptions that no check has shown.
func unchecked(results []CheckResult) int {
	var shown []string
	for _, r := range results {
		if r.Verdict == Holds {
			shown = append(shown, r.Assumptions...)
		}
	}
	slices.Sort(shown)
	return assumptionCount - len(slices.Compact(shown))
}

// hubChecks returns the checks of the hub. Some of them use the results of scenarios and measurements.
func (h *hub) hubChecks(report *Report) []probes.Check {
	passed := func(name string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) {
			for _, s := range report.Scenarios {
				if s.Name == name && s.Error == "" {
					return "scenario " + name, nil
				}
			}
			return "", &probes.UndecidedError{Cause: fmt.Errorf("scenario %s did not pass", name)}
		}
	}
	return []probes.Check{
		{Name: "doctor", Assumptions: []string{"A36", "A54", "A65", "A93", "A155"}, Run: h.doctor},
		{Name: "iam-roles", Assumptions: []string{"A152"}, Run: passed("Child")},
		{Name: "lambda-recursion", Assumptions: []string{"A56"}, Run: func(context.Context) (string, error) {
			return fmt.Sprintf("%d activities in sequence", warmSteps), nil // measure has run them
		}},
		{Name: "schedule-precision", Assumptions: []string{"A101", "A110"}, Run: func(context.Context) (string, error) {
			return h.schedulePrecision(report)
		}},
		{Name: "s3-delete", Assumptions: []string{"A173"}, Run: h.purgeLarge},
		{Name: "api-paths", Assumptions: []string{"A133"}, Run: func(ctx context.Context) (string, error) {
			detail, err := passed(apiScenario)(ctx)
			if err == nil {
				err = (&operator{h}).repeatHeader(ctx)
			}
			return detail, err
		}},
		{Name: "api-timeout", Assumptions: []string{"A131"}, Run: (&operator{h}).longWait, Slow: true},
		{Name: "api-caller", Assumptions: []string{"A142"}, Run: (&operator{h}).recordCaller},
		{Name: "mapping-delete", Assumptions: []string{"A31"}, Run: h.drained},
		{Name: "mapping-pause", Assumptions: []string{"A43", "A44", "A123"}, Run: passed(pauseScenario), Slow: true},
		{Name: "rule-rate", Assumptions: []string{"A121"}, Run: passed(jobScenario), Slow: true},
	}
}

// mostLate is the minimum lateness of a timer if its schedule does not fire.
const mostLate = 30 * time.Second

// schedulePrecision checks the measured lateness of timers with schedules.
func (h *hub) schedulePrecision(report *Report) (string, error) {
	if h.deployment.Config.TimerMode != dynamo.TimersSchedules {
		return "", &probes.UndecidedError{Cause: errors.New("the hub uses no schedules")}
	}
	for _, l := range report.Latencies {
		if l.Name != scheduledTimers {
			continue
		}
		if late := time.Duration(l.Max * float64(time.Millisecond)); late > mostLate {
			return "", fmt.Errorf("a timer was %v late", late)
		}
		return fmt.Sprintf("late by at most %.0f ms", l.Max), nil
	}
	return "", &probes.UndecidedError{Cause: errors.New("not measured")}
}

// purgeLarge purges an instance with large payloads, which the sweeper deletes with DeleteObjects.
func (h *hub) purgeLarge(ctx context.Context) (string, error) {
	const id = "scenario-LargeActivities"
	if err := h.client.Purge(ctx, id); err != nil {
		return "", &probes.UndecidedError{Cause: err}
	}
	return "payloads purged", h.eventually(ctx, func() error {
		_, err := h.client.Status(ctx, id)
		if errors.Is(err, client.ErrNotFound) {
			return nil
		}
		return cmp.Or(err, errors.New("the purge does not complete"))
	})
}

// drainLimit is the time in which counts of queues become current.
const drainLimit = 75 * time.Second

// drained waits until the inbox and the work queues are empty: mappings have deleted all messages that did not fail.
func (h *hub) drained(ctx context.Context) (string, error) {
	urls := append(slices.Collect(maps.Values(h.deployment.Config.WorkQueues)), h.deployment.Config.InboxURL)
	began := h.now()
	for {
		left := 0
		for _, url := range urls {
			n, err := h.depth(ctx, url)
			if err != nil {
				return "", &probes.UndecidedError{Cause: err}
			}
			left += n
		}
		switch {
		case left == 0:
			return fmt.Sprintf("%d queues are empty", len(urls)), nil
		case h.now().Sub(began) > drainLimit:
			return "", fmt.Errorf("%d messages remain", left)
		}
		if err := h.sleep(ctx, time.Second); err != nil {
			return "", &probes.UndecidedError{Cause: err}
		}
	}
}

// depth returns the number of messages of a queue, with those in flight.
func (h *hub) depth(ctx context.Context, url string) (n int, err error) {
	counts := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}
	out, err := h.deployment.Queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: counts,
	})
	if err != nil {
		return 0, fmt.Errorf("read counts: %w", err)
	}
	for _, name := range counts {
		some, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			return 0, fmt.Errorf("read counts: %w", err)
		}
		n += some
	}
	return n, nil
}

// withoutRecovery is a finding that is intended in a disposable stack.
const withoutRecovery = "point-in-time recovery is off"

// doctor runs perdure doctor.
func (h *hub) doctor(ctx context.Context) (string, error) {
	findings := h.deployment.Check(ctx)
	var problems, unread []string
	for i := range findings {
		f := &findings[i]
		if f.Unverified {
			unread = append(unread, f.Resource)
			continue
		}
		if f.Problem == withoutRecovery {
			continue
		}
		problems = append(problems, f.Resource+": "+f.Problem)
	}
	switch {
	case len(problems) > 0:
		return "", errors.New(strings.Join(problems, "; "))
	case len(unread) > 0:
		return "", &probes.UndecidedError{Cause: fmt.Errorf("could not read %s", strings.Join(unread, ", "))}
	}
	return "no findings", nil
}
