package dispatch_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// intervention is an orchestration with a client that acts at a time that the seed selects.
type intervention struct {
	name          string
	orchestration string
	input         any
	act           func(*simClient, context.Context)
	check         func(*simClient, context.Context) error
}

func interventions() []intervention {
	return []intervention{
		{"cancel", "tree", 3, (*simClient).cancel, (*simClient).checkCancelled},
		{"cancel-inline", "dawdles", 4, (*simClient).cancel, (*simClient).checkCancelled},
		{"cancel-activity", "picky", 3, (*simClient).cancelActivity, (*simClient).checkCancelledActivity},
		{"purge-running", "life", 1, (*simClient).purgeAndStartAgain, (*simClient).checkNextIncarnation},
		{"purge-over", "parent", 2, (*simClient).purgeEnded, (*simClient).checkNone},
		{"purge-events", "adds", 0, (*simClient).purgeBetweenEvents, (*simClient).checkEvents},
		{"purge-child", "asks", 0, (*simClient).purgeChild, (*simClient).checkParent},
		{scenarioPoison, "poisoned", 2, nil, (*simClient).checkPoisoned},
		{scenarioQueries, "tally", tallyActivities, (*simClient).queryInstances, (*simClient).checkQueries},
	}
}

// interventionRegistry returns a registry with the orchestrations of the interventions. Its activities report their
// start to the witness.
func interventionRegistry(w *monitor) *perdure.Registry {
	r := poisonRegistry(&crashingActivity{})
	dwell := func(ctx context.Context, d time.Duration) (string, error) {
		w.begins(ctx)
		simhub.Step(ctx)
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	perdure.AddActivity(r, "dwell", dwell)
	tree := func(ctx *perdure.OrchestrationContext, depth int) (int, error) {
		all := []perdure.Awaitable{
			perdure.CallActivityByName[string](ctx, "dwell", 0),
			perdure.CallActivityByName[string](ctx, "dwell", 3*time.Second), perdure.CreateTimer(ctx, time.Hour),
		}
		if depth > 0 {
			all = append(all, perdure.CallSubOrchestrationByName[int](ctx, "tree", depth-1))
		}
		return depth, perdure.WhenAll(ctx, all...)
	}
	perdure.AddOrchestration(r, "tree", tree)
	perdure.AddOrchestration(r, "picky", func(ctx *perdure.OrchestrationContext, n int) (ends []string, _ error) {
		var fs []*perdure.Future[string]
		for range n {
			fs = append(fs, perdure.CallActivityByName[string](ctx, "dwell", 2*time.Second))
		}
		for _, f := range fs {
			end, err := f.Await(ctx)
			if _, cancelled := errors.AsType[*perdure.CancelledError](err); cancelled {
				end, err = "cancelled", nil
			}
			if err != nil {
				return nil, err
			}
			ends = append(ends, end)
		}
		return ends, nil
	})
	perdure.AddOrchestration(r, "dawdles", func(ctx *perdure.OrchestrationContext, n int) (v int, err error) {
		for range n {
			if _, err := perdure.CallActivityByName[time.Duration](ctx, "sleepy",
				1200*time.Millisecond).Await(ctx); err != nil {
				return 0, err
			}
			if v, err = perdure.CallActivityByName[int](ctx, "link", v).Await(ctx); err != nil {
				return 0, err
			}
		}
		return v, nil
	})
	// The first incarnation of "life" is a tree, and the second one is short.
	perdure.AddOrchestration(r, "life", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		if n == 1 {
			return tree(ctx, 1)
		}
		return chain(ctx, n)
	})
	perdure.AddOrchestration(r, "adds", func(ctx *perdure.OrchestrationContext, sum int) (int, error) {
		for {
			n, err := perdure.WaitForExternalEvent[int](ctx, "add").Await(ctx)
			if err != nil || n == 0 {
				return sum, err
			}
			sum += n
		}
	})
	perdure.AddOrchestration(r, "tally", tally)
	perdure.AddOrchestration(r, "asks", func(ctx *perdure.OrchestrationContext, _ int) (string, error) {
		_, err := perdure.CallSubOrchestrationByName[int](ctx, "tree", 1, perdure.WithInstanceID("kid")).Await(ctx)
		if failed, ok := errors.AsType[*perdure.SubOrchestrationError](err); ok {
			return failed.Type + ": " + failed.Message, nil
		}
		return "done", err
	})
	return r
}

// simClient is a client of a simulated hub with its observations.
type simClient struct {
	h     *hub
	w     *monitor
	c     *client.Client
	name  string // "" means "client"
	first provider.Instance
	rng   *rand.Rand

	calls     int
	at        time.Time // the time of the response to the decisive call
	response  error     // its result
	repeated  bool      // its first try was lost by a fault
	purged    bool
	target    int64         // the activity that it cancels
	faultless bool          // no faults
	stays     time.Duration // time for which it stays active; 0 means twelve hours
	// completed is the time of the first use of a completion token.
	completed time.Time
	errs      []error
}

// isActive reports whether the client is still active. It stops when the hub closes, or when an instance may be
// blocked.
func (m *simClient) isActive(ctx context.Context) bool {
	return ctx.Err() == nil && time.Since(m.first.CreatedAt) < cmp.Or(m.stays, 12*time.Hour)
}

// moment waits for a time and a number of scheduler decisions that the seed selects.
func (m *simClient) moment(ctx context.Context) {
	passes := []time.Duration{
		0, 0, 0, time.Second, 4 * time.Second, 30 * time.Second, 10 * time.Minute, 59 * time.Minute, 61 * time.Minute,
	}
	time.Sleep(passes[m.rng.IntN(len(passes))])
	simhub.Idle(ctx, m.rng.IntN(80))
}

// isInjectedFault reports whether an error is an injected fault, after which it is unknown whether the call was
// executed.
func isInjectedFault(err error) bool {
	p, ok := errors.AsType[*provider.Error](err)
	return errors.Is(err, simhub.ErrCrashed) || errors.Is(err, simhub.ErrFailed) || ok && p.Retryable
}

// once makes a call in a separate process, in which faults may occur.
func (m *simClient) once(ctx context.Context, f func(ctx context.Context) error) error {
	m.calls++
	return f(m.h.Scheduler.Exposed(ctx, fmt.Sprintf("%s %d", cmp.Or(m.name, "client"), m.calls)))
}

// repeatCall repeats a call until it has a result.
func (m *simClient) repeatCall(ctx context.Context, f func(ctx context.Context) error) error {
	m.repeated = false
	for {
		err := m.once(ctx, f)
		if !isInjectedFault(err) || !m.isActive(ctx) {
			m.at, m.response = time.Now(), err
			return err
		}
		m.repeated = true
		time.Sleep(time.Second)
	}
}

// until repeats a call while it returns the error early.
func (m *simClient) until(ctx context.Context, early error, f func(ctx context.Context) error) error {
	for {
		err := m.repeatCall(ctx, f)
		if !errors.Is(err, early) || !m.isActive(ctx) {
			return err
		}
		time.Sleep(time.Duration(1+m.rng.IntN(60)) * time.Second)
	}
}

func (m *simClient) wrong(what string, err error) {
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("%s: %w", what, err))
	}
}

func (m *simClient) cancel(ctx context.Context) {
	m.moment(ctx)
	err := m.repeatCall(ctx, func(ctx context.Context) error { return m.c.Cancel(ctx, m.first.InstanceID, "enough") })
	if err != nil && !errors.Is(err, client.ErrEnded) {
		m.wrong("cancel", err)
	}
}

// pauseAndResume pauses the instance, raises the events that it waits for, and resumes it. It repeats the resume until
// the instance has ended, because a dead letter arrives late. The IDs of its requests depend only on the seed.
func (m *simClient) pauseAndResume(ctx context.Context) {
	m.sendMessage(ctx, "pause", pauseMessage(m.first, "p", "ann"))
	for n := range 3 {
		m.sendMessage(ctx, "raise", provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: m.first.InstanceID, Name: "add", EventID: fmt.Sprint("e", n),
			Data: encoded(m.h.t, n),
		})
	}
	for n := 0; m.isActive(ctx) && !m.over(ctx); n++ {
		m.sendMessage(ctx, "resume", resumeMessage(m.first, fmt.Sprint("r", n), "bob"))
		time.Sleep(20 * time.Minute)
	}
}

// update sends the updates of updatedMeanwhile at times that the seed selects. Most of them are before the first turn
// or much later.
func (m *simClient) update(ctx context.Context) {
	change := func(id string, s addition) {
		m.sendMessage(ctx, "update", updateMessage(m.first, id, encoded(m.h.t, s)))
	}
	raise := func(n int) {
		m.sendMessage(ctx, "raise", provider.Message{
			Kind: provider.MessageEventRaised, InstanceID: m.first.InstanceID, Name: "add", EventID: fmt.Sprint("e", n),
			Data: encoded(m.h.t, n),
		})
	}
	change("u1", addition{Inline: 2})
	change("u2", addition{Queued: 1, Inline: 1})
	change("u3", addition{Refuse: true})
	change("u1", addition{Inline: 7})
	raise(1)
	change("u4", addition{Inline: 1})
	change("u3", addition{Inline: 7})
	raise(2)
}

// sendMessage sends a message at a time that the seed selects. It repeats the send until SQS accepts the message.
func (m *simClient) sendMessage(ctx context.Context, what string, message provider.Message) {
	m.moment(ctx)
	m.wrong(what, m.repeatCall(ctx, func(ctx context.Context) error {
		return m.h.Provider.EnqueueForOrchestrator(ctx, message)
	}))
}

// over reports whether the instance has ended.
func (m *simClient) over(ctx context.Context) (over bool) {
	m.wrong("status", m.repeatCall(ctx, func(ctx context.Context) error {
		s, err := m.c.Status(ctx, m.first.InstanceID)
		over = s.Status.Terminal()
		return err
	}))
	return over
}

// history returns the events of an instance's current execution.
func (m *simClient) history(ctx context.Context, instanceID string) (events []history.Event, err error) {
	for e, err := range m.c.History(ctx, instanceID) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func (m *simClient) checkCancelled(ctx context.Context) error {
	events, err := m.history(ctx, m.first.InstanceID)
	if err != nil {
		return err
	}
	queried := false
	for i := range events {
		queried = queried || events[i].Kind == history.CancelRequested
	}
	switch end := events[len(events)-1]; {
	case end.Kind == history.OrchestrationCancelled && queried:
		return nil
	case end.Kind != history.OrchestrationCompleted || queried:
		return fmt.Errorf("ended with %s, cancel requested: %t", end.String(), queried)
	case m.response == nil && end.Time.Sub(m.at) > maxMessageDelay:
		return fmt.Errorf("the cancel was lost: sent %v before the end", end.Time.Sub(m.at))
	}
	return nil
}

func (m *simClient) cancelActivity(ctx context.Context) {
	m.moment(ctx)
	m.target = int64(3 + m.rng.IntN(3))
	err := m.until(ctx, client.ErrActivityNotFound, func(ctx context.Context) error {
		return m.c.CancelActivity(ctx, m.first.InstanceID, m.target, "this one")
	})
	if err != nil && !errors.Is(err, client.ErrNotCancellable) {
		m.wrong("cancel activity", err)
	}
}

func (m *simClient) checkCancelledActivity(ctx context.Context) error {
	events, err := m.history(ctx, m.first.InstanceID)
	if err != nil {
		return err
	}
	want := []string{"done", "done", "done"}
	for i := range events {
		if e := &events[i]; e.Kind == history.ActivityCancelRequested {
			if e.SourceEventID != m.target {
				return fmt.Errorf("got %s, want a cancel of #%d", e.String(), m.target)
			}
			want[m.target-3] = "cancelled"
		}
	}
	end := events[len(events)-1]
	if end.Kind != history.OrchestrationCompleted || string(end.Output) != string(encoded(m.h.t, want)) {
		return fmt.Errorf("ended with %s, output %s, want %v", end.String(), end.Output, want)
	}
	if want[m.target-3] == "cancelled" && m.response != nil && !m.repeated {
		return fmt.Errorf("activity was cancelled, but the client received %w", m.response)
	}
	return nil
}

// purge deletes an instance. If the process crashes, it repeats the purge or leaves it to the sweeper.
func (m *simClient) purge(ctx context.Context, id string, opts ...client.PurgeOption) error {
	for {
		err := m.once(ctx, func(ctx context.Context) error { return m.c.Purge(ctx, id, opts...) })
		if !isInjectedFault(err) || !m.isActive(ctx) {
			m.purged = m.purged || err == nil
			return err
		}
		for again := m.rng.IntN(2) == 0; !again && m.isActive(ctx); {
			time.Sleep(3 * time.Minute)
			in, err := m.h.Provider.ReadInstance(ctx, id)
			if again = err == nil && in.Status != provider.StatusDeleting; again {
				break // the purge has not started
			}
			if errors.Is(err, provider.ErrNotFound) {
				m.purged = true
				return nil
			}
			_ = m.once(ctx, func(ctx context.Context) error {
				_, err := m.h.Renewer.Sweep(ctx)
				return err
			})
		}
		m.purged = true // a later ErrNotFound may be a result of this purge
	}
}

// startAgain starts the next incarnation of the ID.
func (m *simClient) startAgain(ctx context.Context, name string, input any) {
	err := m.until(ctx, provider.ErrAlreadyExists, func(ctx context.Context) error {
		_, err := m.h.Provider.StartOrchestration(ctx, provider.Start{
			InstanceID: m.first.InstanceID, Name: name, Input: encoded(m.h.t, input), StartID: "start-2",
		})
		return err
	})
	m.wrong("start again", err)
}

func (m *simClient) purgeAndStartAgain(ctx context.Context) {
	m.moment(ctx)
	if err := m.purge(ctx, m.first.InstanceID, client.Force()); err != nil &&
		(!m.purged || !errors.Is(err, client.ErrNotFound)) {
		m.wrong("purge", err)
	}
	simhub.Idle(ctx, m.rng.IntN(20))
	m.startAgain(ctx, "life", 2)
}

// checkIncarnation checks that the instance is the next incarnation without events of the first, and returns its end.
func (m *simClient) checkIncarnation(ctx context.Context) (end history.Event, err error) {
	in, err := m.c.Status(ctx, m.first.InstanceID)
	if err != nil {
		return end, err
	}
	if in.ExecutionID == m.first.ExecutionID {
		return end, errors.New("still the first incarnation")
	}
	events, err := m.history(ctx, m.first.InstanceID)
	if err != nil {
		return end, err
	}
	for i := range events {
		e := &events[i]
		if e.Kind == history.OrchestrationStarted && (e.StartID != "start-2" || e.Number != 1) || e.EventID == "old" ||
			e.Kind == history.CancelRequested {
			return end, fmt.Errorf("%s belongs to the first incarnation", e.String())
		}
	}
	return events[len(events)-1], nil
}

func (m *simClient) checkNextIncarnation(ctx context.Context) error {
	end, err := m.checkIncarnation(ctx)
	if err == nil && (end.Kind != history.OrchestrationCompleted || string(end.Output) != "2") {
		err = fmt.Errorf("next incarnation ended with %s, output %s", end.String(), end.Output)
	}
	return err
}

func (m *simClient) purgeEnded(ctx context.Context) {
	for {
		err := m.purge(ctx, m.first.InstanceID)
		if !errors.Is(err, client.ErrNotEnded) || !m.isActive(ctx) {
			if err != nil && (!m.purged || !errors.Is(err, client.ErrNotFound)) {
				m.wrong("purge", err)
			}
			return
		}
		m.moment(ctx)
	}
}

func (m *simClient) checkNone(ctx context.Context) error {
	if in, err := m.h.Provider.ReadInstance(ctx, m.first.InstanceID); !errors.Is(err, provider.ErrNotFound) {
		return errors.Join(err, fmt.Errorf("got status %q, want no instance", in.Status))
	}
	it := m.h.item("i#"+m.first.InstanceID, "i")
	if text(it, "deleted") == "" || it["ttl"] == nil || it["execution"] != nil || it["gs"] != nil {
		return fmt.Errorf("got tombstone %v", it)
	}
	return nil
}

// purgeBetweenEvents lets the first incarnation consume an event whose message may be repeated, and the next one other
// events. Each event is raised once, because the next incarnation would receive a repetition after the purge.
func (m *simClient) purgeBetweenEvents(ctx context.Context) {
	raise := func(id string, n int) {
		m.wrong("raise", m.c.RaiseEvent(ctx, m.first.InstanceID, "add", n, client.WithEventID(id)))
	}
	raise("old", 100)
	for receivedCount := false; !receivedCount && m.isActive(ctx); time.Sleep(time.Second) {
		events, err := m.history(ctx, m.first.InstanceID)
		m.wrong("history", err)
		for i := range events {
			// sometimes parked as poison
			receivedCount = receivedCount || events[i].EventID == "old" || events[i].Kind == history.InputsParked
		}
	}
	if err := m.purge(ctx, m.first.InstanceID, client.Force()); err != nil &&
		(!m.purged || !errors.Is(err, client.ErrNotFound)) {
		m.wrong("purge", err)
	}
	m.startAgain(ctx, "adds", 0)
	m.moment(ctx)
	raise("new", 1)
	raise("end", 0)
}

func (m *simClient) checkEvents(ctx context.Context) error {
	end, err := m.checkIncarnation(ctx)
	if err == nil && (end.Kind != history.OrchestrationCompleted || string(end.Output) != "1") {
		err = fmt.Errorf("next incarnation ended with %s, output %s", end.String(), end.Output)
	}
	return err
}

func (m *simClient) purgeChild(ctx context.Context) {
	m.moment(ctx)
	for range 100 {
		if err := m.purge(ctx, "kid", client.Force()); err == nil || m.purged || !errors.Is(err, client.ErrNotFound) {
			if !m.purged {
				m.wrong("purge", err)
			}
			return
		}
		time.Sleep(time.Second)
	}
}

func (m *simClient) checkParent(ctx context.Context) error {
	events, err := m.history(ctx, m.first.InstanceID)
	if err != nil {
		return err
	}
	end := events[len(events)-1]
	if end.Kind != history.OrchestrationCompleted {
		return fmt.Errorf("parent ended with %s", end.String())
	}
	if out := string(end.Output); out != `"done"` && out != `"terminated: deleted"` {
		return fmt.Errorf("parent received %s", out)
	}
	if in, err := m.h.Provider.ReadInstance(ctx, "kid"); err == nil && m.purged && !in.Status.Terminal() {
		return fmt.Errorf("child: got status %s", in.Status)
	}
	return nil
}

// checkPoisoned checks that the activity that always kills its process has failed, and that the other activities are
// completed. A turn or another activity of the same batch may have become poison.
func (m *simClient) checkPoisoned(ctx context.Context) error {
	in, err := m.c.Status(ctx, m.first.InstanceID)
	if err != nil || in.Status == provider.StatusBlocked && m.w.blocked[in.InstanceID] || m.w.poison["inc"] {
		return err
	}
	end, err := m.h.Provider.ReadTerminalEvent(ctx, in.ExecutionID)
	if err != nil || string(end.Output) != `"3, poison true"` {
		return errors.Join(err, fmt.Errorf("ended with %s, output %s", end.String(), end.Output))
	}
	bodies, _ := m.h.dead("sim://default-dead")
	if len(bodies) == 0 {
		return errors.New("got no dead letter")
	}
	return nil
}
