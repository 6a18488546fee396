package probes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/provider/dynamo"
)

const (
	// FunctionTimeout is the timeout of the probe function, and the visibility timeout of its queues, in seconds.
	FunctionTimeout = 6
	// FunctionConcurrency is the maximum concurrency of the mapping of the standard queue, whose batches have one
	// message.
	FunctionConcurrency = 2
)

// FunctionConfig has the probe functions and the queues with a mapping.
type FunctionConfig struct {
	// MappedName is the function of the mappings. CalledName has the same code, and is only invoked directly.
	MappedName, CalledName   string
	MappedURL, MappedFIFOURL string
}

// functionProbes checks assumptions about Lambda and its event source mappings.
type functionProbes struct {
	clock

	FunctionConfig

	Functions dynamo.FunctionAPI
	Metrics   MetricAPI
	Hub       string
	Queues    *queueProbes
	Table     *tableProbes
}

// checks returns groups of checks that may run concurrently.
func (p *functionProbes) checks() [][]Check {
	return [][]Check{
		{
			{Name: "mapping-partial", Assumptions: []string{"A32"}, Run: p.partial},
			{Name: "mapping-visibility", Assumptions: []string{"A34"}, Run: p.visibility},
			{Name: "mapping-concurrency", Assumptions: []string{"A41"}, Run: p.concurrency}, // delays the others
		},
		{
			{Name: "mapping-groups", Assumptions: []string{"A33"}, Run: p.groups},
			{Name: "mapping-early-delete", Assumptions: []string{"A35"}, Run: p.earlyDelete},
		},
		{ // a concurrent invocation would start another environment
			{Name: "lambda-freeze", Assumptions: []string{"A51"}, Run: p.freeze},
			{Name: "lambda-deadline", Assumptions: []string{"A53", "A62"}, Run: p.deadline},
			{Name: "lambda-size", Assumptions: []string{"A57"}, Run: p.size},
			{Name: "iam-leading-keys", Assumptions: []string{"A151"}, Run: p.leadingKeys},
		},
	}
}

// slowChecks returns groups of checks that wait for minutes.
func (p *functionProbes) slowChecks() [][]Check {
	return [][]Check{
		{{Name: "sqs-dedup-window", Assumptions: []string{"A4"}, Run: p.deduplicationWindow, Slow: true}},
		{{Name: "lambda-async", Assumptions: []string{"A66"}, Run: p.async, Slow: true}},
		{{Name: "cloudwatch-metrics", Assumptions: []string{"A181"}, Run: p.metrics, Slow: true}},
	}
}

const (
	// receiveLimit is the time in which a failed message must arrive again. A mapping waits longer after failures.
	receiveLimit = time.Minute
	receivePause = 500 * time.Millisecond
	// clockDifference is the maximum difference between the clocks of SQS and of a function.
	clockDifference = time.Second
	// deliveryTime is the maximum time between the receive of a message and the start of its invocation.
	deliveryTime = 3 * time.Second
)

// sendTasks sends a batch of tasks to a queue of the function.
func (p *functionProbes) sendTasks(ctx context.Context, url string, tasks ...probefunction.Task) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		t.QueueURL = url
		body, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("encode task: %w", err)
		}
		entries[i] = message(string(body))
		if url == p.MappedFIFOURL {
			entries[i] = grouped(string(body), t.Check+"-"+cmp.Or(t.Group, t.Name), t.Check+"-"+t.Name)
		}
	}
	_, err := p.Queues.send(ctx, url, entries...)
	return undecided(err)
}

// records returns the records of a check in the order of their start.
func (p *functionProbes) records(ctx context.Context, check string) (all []probefunction.Record, err error) {
	out, err := p.Table.Table.Query(ctx, p.Table.of(probefunction.Partition(check)))
	if err != nil {
		return nil, undecided(err)
	}
	for _, i := range out.Items {
		var r probefunction.Record
		if err := json.Unmarshal([]byte(valueOf(i)), &r); err != nil {
			return nil, undecided(fmt.Errorf("decode record: %w", err))
		}
		all = append(all, r)
	}
	return all, nil
}

// receives returns the records of a task.
func receives(all []probefunction.Record, name string) []probefunction.Record {
	return slices.DeleteFunc(slices.Clone(all), func(r probefunction.Record) bool { return r.Name != name })
}

// await waits until the function has received each task of a check a number of times. It is undecided if a task never
// arrives, or if its first receive ran no code, for example because the account's concurrency was exhausted.
func (p *functionProbes) await(
	ctx context.Context, check string, want map[string]int,
) (all []probefunction.Record, err error) {
	err = p.until(ctx, receiveLimit, receivePause, func() (missing, err error) {
		if all, err = p.records(ctx, check); err != nil {
			return nil, err
		}
		for name, n := range want {
			switch got := receives(all, name); {
			case len(got) == 0:
				missing = undecided(fmt.Errorf("message %q did not arrive in %v", name, receiveLimit))
			case got[0].Receives > 1:
				return nil, undecided(fmt.Errorf("receive 1 of message %q did not run the function", name))
			case len(got) < n && missing == nil:
				missing = fmt.Errorf("message %q arrived %d of %d times in %v", name, len(got), n, receiveLimit)
			}
		}
		return missing, nil
	})
	return all, err
}

// partial sends messages that succeed, and messages whose invocation fails in two ways.
func (p *functionProbes) partial(ctx context.Context) (string, error) {
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
func (p *functionProbes) visibility(ctx context.Context) (string, error) {
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

// batchTries is the number of batches that are sent until one arrives in one invocation.
const batchTries = 10

// together sends batches of tasks to the FIFO queue until one arrives in one invocation, in its order. The names of its
// tasks have the returned suffix.
func (p *functionProbes) together(ctx context.Context, tasks ...probefunction.Task) (suffix string, err error) {
	for n := range batchTries {
		suffix = "-" + strconv.Itoa(n)
		named, want := slices.Clone(tasks), map[string]int{}
		for i := range named {
			t := &named[i]
			t.Group = cmp.Or(t.Group, t.Name) + suffix
			t.Name += suffix
			want[t.Name] = 1
		}
		if err := p.sendTasks(ctx, p.MappedFIFOURL, named...); err != nil {
			return "", err
		}
		all, err := p.await(ctx, tasks[0].Check, want)
		if err != nil {
			return "", err
		}
		before := &receives(all, named[0].Name)[0]
		together := true
		for i := range named[1:] {
			r := &receives(all, named[i+1].Name)[0]
			together = together && r.Invocation == before.Invocation && !r.StartedAt.Before(before.StartedAt)
			before = r
		}
		if together {
			return suffix, nil
		}
	}
	return "", undecided(fmt.Errorf("none of %d batches arrived in one invocation", batchTries))
}

// settled returns the records of a check when failed messages have had the time to arrive again.
func (p *functionProbes) settled(ctx context.Context, check string) ([]probefunction.Record, error) {
	if err := p.Sleep(ctx, FunctionTimeout*time.Second+deliveryTime); err != nil {
		return nil, undecided(err)
	}
	return p.records(ctx, check)
}

// otherName is the name of an item or message that must not be affected.
const otherName = "other"

// groups sends a FIFO batch of two groups. The function fails one of them, and reports all its messages.
func (p *functionProbes) groups(ctx context.Context) (string, error) {
	const check, failed = "mapping-groups", "failed"
	first, second, other := "first", "second", otherName
	suffix, err := p.together(ctx,
		probefunction.Task{Check: check, Name: first, Group: failed, Failure: probefunction.Reported},
		probefunction.Task{Check: check, Name: second, Group: failed},
		probefunction.Task{Check: check, Name: other},
	)
	if err != nil {
		return "", err
	}
	first, second, other = first+suffix, second+suffix, other+suffix
	if _, err := p.await(ctx, check, map[string]int{first: 2, second: 2}); err != nil {
		return "", err
	}
	all, err := p.settled(ctx, check)
	if err != nil {
		return "", err
	}
	if n := len(receives(all, other)); n > 1 {
		return "", fmt.Errorf("a message of another group arrived %d times", n)
	}
	if receives(all, second)[1].StartedAt.Before(receives(all, first)[1].StartedAt) {
		return "", errors.New("after a failure, the second message of a group arrived before the first one")
	}
	return "the failed group arrived again in order, the other one did not", nil
}

// earlyDelete sends a FIFO batch. The function deletes one of its messages.
func (p *functionProbes) earlyDelete(ctx context.Context) (string, error) {
	const check = "mapping-early-delete"
	suffix, err := p.together(ctx,
		probefunction.Task{Check: check, Name: "deleted", Delete: true},
		probefunction.Task{Check: check, Name: otherName},
	)
	if err != nil {
		return "", err
	}
	all, err := p.settled(ctx, check)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"deleted" + suffix, otherName + suffix} {
		if n := len(receives(all, name)); n > 1 {
			return "", fmt.Errorf("message %q arrived %d times", name, n)
		}
	}
	return "neither the deleted message nor its batch arrived again", nil
}

// concurrency sends messages that need longer than their visibility timeout if the mapping limits its concurrency.
func (p *functionProbes) concurrency(ctx context.Context) (string, error) {
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
	all, err := p.await(ctx, check, want)
	if err != nil {
		return "", err
	}
	for i := range all {
		r := &all[i]
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

// deduplicationWindow sends a message again with the same deduplication ID after five minutes.
func (p *functionProbes) deduplicationWindow(ctx context.Context) (string, error) {
	const check, window, clocks = "sqs-dedup-window", 5 * time.Minute, 5 * time.Second
	m := probefunction.Task{Check: check, Name: "repeated"}
	if err := p.sendTasks(ctx, p.MappedFIFOURL, m); err != nil {
		return "", err
	}
	if _, err := p.await(ctx, check, map[string]int{m.Name: 1}); err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, window+clocks); err != nil {
		return "", undecided(err)
	}
	if err := p.sendTasks(ctx, p.MappedFIFOURL, m); err != nil {
		return "", err
	}
	all, err := p.await(ctx, check, map[string]int{m.Name: 2}) //nolint:mnd // one for each send
	if err != nil {
		return "", err
	}
	if all[len(all)-1].MessageID == all[0].MessageID {
		return "", undecided(errors.New("the first message arrived twice"))
	}
	return fmt.Sprintf("accepted again after %v", window+clocks), nil
}
