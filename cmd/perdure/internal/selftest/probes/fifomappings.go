package probes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// batchTries is the number of batches that are sent until one arrives in one invocation.
const batchTries = 10

// together sends batches of tasks to the FIFO queue until one arrives in one invocation, in its order. The names of its
// tasks have the returned suffix.
func (p *mappingProbes) together(ctx context.Context, tasks ...probefunction.Task) (suffix string, err error) {
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

// groups sends a FIFO batch of two groups. The function fails one of them, and reports all its messages.
func (p *mappingProbes) groups(ctx context.Context) (string, error) {
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
func (p *mappingProbes) earlyDelete(ctx context.Context) (string, error) {
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

// splitMessages is the number of messages of a group that exceed the size of an invocation together.
const splitMessages = 9

// split sends more bytes of a message group than an invocation accepts. While they are sent, the first message blocks
// the group. Then the function fails the second one, and the later ones of the same invocation.
func (p *mappingProbes) split(ctx context.Context) (string, error) {
	const check, group, size, blocked, sendLimit = "mapping-split", "all", 1_000_000, 60, 45 * time.Second
	padding := strings.Repeat("x", size)
	tasks := make([]probefunction.Task, splitMessages)
	for n := range tasks {
		tasks[n] = probefunction.Task{Check: check, Name: strconv.Itoa(n), Group: group, Padding: padding}
	}
	first, failing, last := &tasks[0], &tasks[1], tasks[splitMessages-1].Name
	first.Failure, first.Visibility, failing.Failure = probefunction.Reported, blocked, probefunction.Reported
	var began time.Time
	for n := range tasks {
		if err := p.sendTasks(ctx, p.MappedFIFOURL, tasks[n]); err != nil {
			return "", err
		}
		if n == 0 {
			if _, err := p.await(ctx, check, map[string]int{first.Name: 1}); err != nil {
				return "", err
			}
			began = p.Now()
		}
		if took := p.Now().Sub(began); took > sendLimit {
			return "", undecided(fmt.Errorf("sending %d messages of %d bytes took %v", n, size, took))
		}
	}
	const limit = blocked*time.Second + 2*receiveLimit
	if err := p.untilRead(ctx, limit, receivePause, func() (missing, err error) {
		all, err := p.records(ctx, check)
		if err == nil && len(receives(all, last)) == 0 {
			missing = undecided(fmt.Errorf("message %s did not arrive in %v", last, limit))
		}
		return missing, err
	}); err != nil {
		return "", err
	}
	if _, err := p.await(ctx, check, map[string]int{failing.Name: 2}); err != nil {
		return "", err
	}
	all, err := p.settled(ctx, check)
	if err != nil {
		return "", err
	}
	return splitOrder(all, failing.Name)
}

// splitOrder checks that messages of a group, whose names are numbers, ran in order, although one failed. The last one
// must have been received with it, and not have been in its invocation.
func splitOrder(all []probefunction.Record, failing string) (string, error) {
	runs := make([][]probefunction.Record, splitMessages)
	for n := range runs {
		if runs[n] = receives(all, strconv.Itoa(n)); len(runs[n]) == 0 {
			return "", undecided(fmt.Errorf("message %d did not arrive", n))
		}
	}
	failed, last := &receives(all, failing)[0], &runs[splitMessages-1][0]
	switch {
	case failed.Receives > 1:
		return "", undecided(fmt.Errorf("receive 1 of message %s did not run the function", failing))
	case last.Invocation == failed.Invocation:
		return "", undecided(errors.New("one invocation had the whole batch"))
	case last.FirstReceivedAt.Sub(failed.FirstReceivedAt).Abs() > clockDifference:
		return "", undecided(errors.New("the messages were not received together"))
	}
	invocations := map[string]bool{}
	var before time.Time
	for n := range runs {
		run := &runs[n][len(runs[n])-1] // the ones before have failed
		if run.Invocation == failed.Invocation && n > 0 {
			return "", undecided(fmt.Errorf("message %d of the failed invocation did not arrive again", n))
		}
		if run.StartedAt.Before(before) {
			return "", fmt.Errorf("after a failure in a split batch, message %d ran before message %d", n, n-1)
		}
		before, invocations[run.Invocation] = run.StartedAt, true
	}
	return fmt.Sprintf("%d messages succeeded in order in %d invocations", splitMessages, len(invocations)), nil
}

// deduplicationWindow sends a message again with the same deduplication ID after five minutes.
func (p *mappingProbes) deduplicationWindow(ctx context.Context) (string, error) {
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
