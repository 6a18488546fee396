package probes

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// mappingProbes checks assumptions about event source mappings.
type mappingProbes struct{ *functionClient }

// checks returns groups of checks that may run concurrently.
func (p *mappingProbes) checks() [][]Check {
	return [][]Check{
		{
			{Name: "mapping-partial", Assumptions: []string{"A32"}, Run: p.partial},
			{Name: "mapping-visibility", Assumptions: []string{"A34"}, Run: p.visibility},
			{Name: "mapping-concurrency", Assumptions: []string{"A37", "A41"}, Run: p.concurrency}, // delays the others
		},
		{
			{Name: "mapping-groups", Assumptions: []string{"A33"}, Run: p.groups},
			{Name: "mapping-early-delete", Assumptions: []string{"A35"}, Run: p.earlyDelete},
		},
	}
}

// slowChecks returns groups of checks that wait for minutes.
func (p *mappingProbes) slowChecks() [][]Check {
	return [][]Check{
		{{Name: "sqs-dedup-window", Assumptions: []string{"A4"}, Run: p.deduplicationWindow, Slow: true}},
		{{Name: "mapping-split", Assumptions: []string{"A42"}, Run: p.split, Slow: true}},
		{{Name: "mapping-throttle", Assumptions: []string{"A38"}, Run: p.throttle, Slow: true}},
	}
}

// partial sends messages that succeed, and messages whose invocation fails in two ways.
func (p *mappingProbes) partial(ctx context.Context) (string, error) {
	const check, succeeds = "mapping-partial", "succeeds"
	if err := p.sendTasks(ctx, p.MappedURL,
		probefunction.Task{Check: check, Name: succeeds},
		probefunction.Task{Check: check, Name: "returns an error", Failure: probefunction.Returned},
		probefunction.Task{Check: check, Name: "reports an unknown ID", Failure: probefunction.Unknown},
	); err != nil {
		return "", err
	}
	if _, err := p.await(ctx, check, map[string]int{
		succeeds: 1, "returns an error": 2, "reports an unknown ID": 2,
	}); err != nil {
		return "", err
	}
	all, err := p.settled(ctx, check)
	if err != nil {
		return "", err
	}
	if n := len(receives(all, succeeds)); n > 1 {
		return "", fmt.Errorf("a message arrived %d times after an empty list", n)
	}
	return "an empty list succeeds, an error and an unknown ID fail", nil
}

// visibility measures when failed messages arrive again. The function changes the visibility timeout of all but one.
func (p *mappingProbes) visibility(ctx context.Context) (string, error) {
	const check, unchanged, shorter, longer = "mapping-visibility", "unchanged", "shorter", "longer"
	const short, long, several = 1, 2 * FunctionTimeout, 3
	task := func(name string, visibility int32) probefunction.Task {
		return probefunction.Task{Check: check, Name: name, Failure: probefunction.Reported, Visibility: visibility}
	}
	want := map[string]int{unchanged: 2, longer: 2}
	tasks := []probefunction.Task{task(unchanged, 0), task(longer, long)}
	for n := range several {
		tasks = append(tasks, task(shorter+strconv.Itoa(n), short))
		want[tasks[len(tasks)-1].Name] = 2
	}
	if err := p.sendTasks(ctx, p.MappedURL, tasks...); err != nil {
		return "", err
	}
	all, err := p.await(ctx, check, want)
	if err != nil {
		return "", err
	}
	// The timeout of the queue starts with the receive, one of the function when it sets it.
	again := func(name string) *probefunction.Record { return &receives(all, name)[1] }
	since := func(name string) time.Duration {
		return again(name).StartedAt.Sub(receives(all, name)[0].StartedAt).Round(time.Millisecond)
	}
	wrong := func(name string, after time.Duration, timeout int) error {
		return fmt.Errorf("a failed message with a visibility timeout of %d s (%s) arrived after %v", timeout, name,
			after)
	}
	fastest := shorter + "0" // others may be late for other reasons
	for n := range several {
		if name := shorter + strconv.Itoa(n); since(name) < since(fastest) {
			fastest = name
		}
	}
	after := again(unchanged).StartedAt.Sub(again(unchanged).FirstReceivedAt).Round(time.Millisecond)
	switch {
	case after < FunctionTimeout*time.Second-clockDifference:
		return "", wrong(unchanged, after, FunctionTimeout)
	case since(longer) < long*time.Second-clockDifference:
		return "", wrong(longer, since(longer), long)
	case again(fastest).Receives > 2: //nolint:mnd // one did not run the function
		return "", undecided(wrong(fastest, since(fastest), short))
	case since(fastest) >= FunctionTimeout*time.Second:
		return "", wrong(fastest, since(fastest), short)
	}
	return fmt.Sprintf("with a timeout of %d s after %v, with %d s after %v, with %d s after %v", FunctionTimeout,
		after, long, since(longer), short, since(fastest)), nil
}

// otherName is the name of an item or message that must not be affected.
const otherName = "other"

// concurrency sends messages that need longer than their visibility timeout if the mapping limits its concurrency.
func (p *mappingProbes) concurrency(ctx context.Context) (string, error) {
	const check, messages, batch, each = "mapping-concurrency", 20, 10, time.Second
	want := map[string]int{}
	for first := 0; first < messages; first += batch {
		tasks := make([]probefunction.Task, batch)
		for i := range tasks {
			tasks[i] = probefunction.Task{Check: check, Name: strconv.Itoa(first + i), Duration: each}
			want[tasks[i].Name] = 1
		}
		if err := p.sendTasks(ctx, p.MappedURL, tasks...); err != nil {
			return "", err
		}
	}
	if _, err := p.await(ctx, check, want); err != nil {
		return "", err
	}
	all, err := p.settled(ctx, check)
	if err != nil {
		return "", err
	}
	for i := range all {
		r := &all[i]
		after := r.EndedAt.Sub(r.FirstReceivedAt).Round(time.Millisecond)
		if r.Receives > 1 || after > FunctionTimeout*time.Second+clockDifference {
			return "", fmt.Errorf("with a visibility timeout of %d s, receive %d of a message ends %v after the first",
				FunctionTimeout, r.Receives, after)
		}
		concurrent := 0
		for j := range all {
			if !all[j].StartedAt.After(r.StartedAt) && all[j].EndedAt.After(r.StartedAt) {
				concurrent++
			}
		}
		if concurrent > FunctionConcurrency {
			return "", fmt.Errorf("%d invocations are concurrent", concurrent)
		}
	}
	return fmt.Sprintf("at most %d invocations are concurrent, and no message waits for longer than its "+
		"visibility timeout", FunctionConcurrency), nil
}

// throttle sends a message to the queue of a function without concurrency. Each receive of the mapping must hide the
// message for the visibility timeout, so that it reaches the dead-letter queue only after all of these times.
func (p *mappingProbes) throttle(ctx context.Context) (string, error) {
	const check, limit, hidden = "mapping-throttle", 3 * time.Minute, ThrottledReceives * FunctionTimeout * time.Second
	began := p.Now()
	if err := p.sendTasks(ctx, p.ThrottledURL, probefunction.Task{Check: check}); err != nil {
		return "", err
	}
	if err := p.until(ctx, limit, receivePause, func() (missing, err error) {
		if ran, err := p.records(ctx, check); err != nil || len(ran) > 0 {
			return nil, undecided(cmpErr(err, "the function ran"))
		}
		dead, err := p.Queues.poll(ctx, p.ThrottledDeadURL, locked)
		if len(dead) == 0 {
			missing = undecided(fmt.Errorf("the message is not in the dead-letter queue after %v", limit))
		}
		return missing, undecided(err)
	}); err != nil {
		return "", err
	}
	after := p.Now().Sub(began).Round(time.Second)
	if after < hidden-clockDifference {
		return "", fmt.Errorf("a message that may be received %d times, for %d s each, is a dead letter after %v",
			ThrottledReceives, FunctionTimeout, after)
	}
	return fmt.Sprintf("a dead letter after %v", after), nil
}
