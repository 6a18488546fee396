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

// FunctionConfig has the probe function and the queues with its mappings.
type FunctionConfig struct {
	FunctionName             string
	MappedURL, MappedFIFOURL string
}

// functionProbes checks assumptions about Lambda and its event source mappings.
type functionProbes struct {
	FunctionConfig

	Queues    *queueProbes
	Table     *tableProbes
	Functions dynamo.FunctionAPI
	Now       func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
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
		{ // concurrent invocations have several environments
			{Name: "lambda-freeze", Assumptions: []string{"A51"}, Run: p.freeze},
			{Name: "lambda-deadline", Assumptions: []string{"A53"}, Run: p.deadline},
			{Name: "lambda-response", Assumptions: []string{"A57"}, Run: p.response},
			{Name: "lambda-invoke", Assumptions: []string{"A62"}, Run: p.timeout},
		},
		{{Name: "sqs-dedup-window", Assumptions: []string{"A4"}, Run: p.deduplicationWindow, Slow: true}},
	}
}

const (
	// receiveLimit is the time in which a failed message must arrive again. A mapping waits longer after failures.
	receiveLimit = time.Minute
	receivePause = 500 * time.Millisecond
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

// await waits until the function has received each task of a check a number of times.
func (p *functionProbes) await(
	ctx context.Context, check string, want map[string]int,
) (all []probefunction.Record, err error) {
	began := p.Now()
	for {
		if all, err = p.records(ctx, check); err != nil {
			return nil, err
		}
		missing := ""
		for name, n := range want {
			if got := len(receives(all, name)); got < n {
				missing = fmt.Sprintf("message %q arrived %d of %d times", name, got, n)
			}
		}
		switch {
		case missing == "":
			return all, nil
		case p.Now().Sub(began) > receiveLimit:
			return nil, fmt.Errorf("%s in %v", missing, receiveLimit)
		}
		if err := p.Sleep(ctx, receivePause); err != nil {
			return nil, undecided(err)
		}
	}
}

// partial sends messages that succeed, and messages whose invocation fails in two ways.
func (p *functionProbes) partial(ctx context.Context) (string, error) {
	const check = "mapping-partial"
	if err := p.sendTasks(ctx, p.MappedURL,
		probefunction.Task{Check: check, Name: "succeeds"},
		probefunction.Task{Check: check, Name: "returns an error", Failure: probefunction.Returned},
		probefunction.Task{Check: check, Name: "reports an unknown ID", Failure: probefunction.Unknown},
	); err != nil {
		return "", err
	}
	all, err := p.await(ctx, check, map[string]int{"succeeds": 1, "returns an error": 2, "reports an unknown ID": 2})
	if err != nil {
		return "", err
	}
	if n := len(receives(all, "succeeds")); n > 1 {
		return "", fmt.Errorf("a message arrived %d times after an empty list", n)
	}
	return "an empty list succeeds, an error and an unknown ID fail", nil
}

// visibility measures when failed messages arrive again. The function changes the visibility timeout of one of them.
func (p *functionProbes) visibility(ctx context.Context) (string, error) {
	const check, unchanged, changed = "mapping-visibility", "unchanged", "changed"
	const longer = 2 * FunctionTimeout
	if err := p.sendTasks(ctx, p.MappedURL,
		probefunction.Task{Check: check, Name: unchanged, Failure: probefunction.Reported},
		probefunction.Task{Check: check, Name: changed, Failure: probefunction.Reported, Visibility: longer},
	); err != nil {
		return "", err
	}
	all, err := p.await(ctx, check, map[string]int{unchanged: 2, changed: 2})
	if err != nil {
		return "", err
	}
	gap := func(name string) time.Duration {
		both := receives(all, name)
		return both[1].StartedAt.Sub(both[0].StartedAt).Round(time.Millisecond)
	}
	for name, timeout := range map[string]time.Duration{
		unchanged: FunctionTimeout * time.Second, changed: longer * time.Second,
	} {
		if gap(name) < timeout-deliveryTime {
			return "", fmt.Errorf("a failed message with a visibility timeout of %v arrived after %v", timeout,
				gap(name))
		}
	}
	return fmt.Sprintf("after %v with the timeout of the queue, %v with that of the function", gap(unchanged),
		gap(changed)), nil
}

// batchTries is the number of batches that are sent until one arrives in one invocation.
const batchTries = 10

// together sends batches of tasks to the FIFO queue until one arrives in one invocation. The names of its tasks have
// the returned suffix.
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
		invocations := map[string]bool{}
		for name := range want {
			invocations[receives(all, name)[0].Invocation] = true
		}
		if len(invocations) == 1 {
			return suffix, nil
		}
	}
	return "", undecided(fmt.Errorf("none of %d batches arrived in one invocation", batchTries))
}

// groups sends a FIFO batch of two groups. The function fails one of them, and reports all its messages.
func (p *functionProbes) groups(ctx context.Context) (string, error) {
	const check, failed = "mapping-groups", "failed"
	first, second, other := "first", "second", "other"
	suffix, err := p.together(ctx,
		probefunction.Task{Check: check, Name: first, Group: failed, Failure: probefunction.Reported},
		probefunction.Task{Check: check, Name: second, Group: failed},
		probefunction.Task{Check: check, Name: other},
	)
	if err != nil {
		return "", err
	}
	first, second, other = first+suffix, second+suffix, other+suffix
	all, err := p.await(ctx, check, map[string]int{first: 2, second: 2})
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
		probefunction.Task{Check: check, Name: "other"},
	)
	if err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, FunctionTimeout*time.Second+deliveryTime); err != nil {
		return "", undecided(err)
	}
	all, err := p.records(ctx, check)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"deleted" + suffix, "other" + suffix} {
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
		if r.Receives > 1 {
			return "", fmt.Errorf("message %q was received %d times before it was processed", r.Name, r.Receives)
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

// deduplicationWindow sends a message again with the same deduplication ID after five minutes.
func (p *functionProbes) deduplicationWindow(ctx context.Context) (string, error) {
	const check, window, clocks = "sqs-dedup-window", 5 * time.Minute, 5 * time.Second
	m := probefunction.Task{Check: check, Name: "repeated"}
	for n := range 2 {
		if n > 0 {
			if err := p.Sleep(ctx, window+clocks); err != nil {
				return "", undecided(err)
			}
		}
		if err := p.sendTasks(ctx, p.MappedFIFOURL, m); err != nil {
			return "", err
		}
		if _, err := p.await(ctx, check, map[string]int{m.Name: n + 1}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("accepted again after %v", window+clocks), nil
}
