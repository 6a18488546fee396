package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// question is how the activity "ask" is called, which hands its token to the test, and what it does then.
type question struct {
	StartToClose, Heartbeat, ScheduleToClose, Every time.Duration
	Waited                                          bool
	// Takes is how long it goes on once it has handed over its token, Once that it does so in its first run alone; Fails is that it returns an error then.
	Takes time.Duration
	Once  bool
	// Beats is that it sends a heartbeat before it returns.
	Beats bool
	Fails bool
	// GivesUp is after how long the orchestration gives the answer up; 0: never.
	GivesUp time.Duration
}

func (q question) options() (opts []perdure.ActivityCallOption) {
	if q.StartToClose > 0 {
		opts = append(opts, perdure.WithStartToCloseTimeout(q.StartToClose))
	}
	if q.Heartbeat > 0 {
		opts = append(opts, perdure.WithHeartbeatTimeout(q.Heartbeat))
	}
	if q.ScheduleToClose > 0 {
		opts = append(opts, perdure.WithScheduleToCloseTimeout(q.ScheduleToClose))
	}
	if q.Every > 0 {
		opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: q.Every, BackoffCoefficient: 1, MaxInterval: q.Every}))
	}
	if q.Waited {
		opts = append(opts, perdure.WaitForCancellation())
	}
	return opts
}

// handedToken is a token that was handed over.
type handedToken struct {
	token   string
	attempt int
	at      time.Time
}

// asking is a hub whose activity "ask" is completed by the test.
type asking struct {
	*hub

	client *client.Client
	mu     sync.Mutex
	tokens []handedToken
}

func (a *asking) ask(ctx context.Context, q question) (string, error) {
	info := perdure.ActivityInfoFrom(ctx)
	a.mu.Lock()
	a.tokens = append(a.tokens, handedToken{info.CompletionToken, info.Attempt, time.Now()})
	first := len(a.tokens) == 1
	a.mu.Unlock()
	if first || !q.Once {
		time.Sleep(q.Takes)
	}
	if q.Beats {
		perdure.Heartbeat(ctx, "there")
	}
	if q.Fails {
		return "", errors.New("changed its mind")
	}
	return "", fmt.Errorf("asked: %w", perdure.ErrPending)
}

// handedOver are the tokens so far.
func (a *asking) handedOver() []handedToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]handedToken(nil), a.tokens...)
}

// last is the token of the n-th run, from 0.
func (a *asking) token(n int) string {
	a.t.Helper()
	if tokens := a.handedOver(); n < len(tokens) {
		return tokens[n].token
	}
	a.t.Fatalf("the activity has run %d times", len(a.handedOver()))
	return ""
}

func asks(ctx *perdure.OrchestrationContext, q question) (string, error) {
	scope, cancel := perdure.WithCancel(ctx)
	answer := perdure.CallActivityByName[string](scope, "ask", q, q.options()...)
	if q.GivesUp > 0 {
		_ = perdure.Sleep(ctx, q.GivesUp)
		cancel()
	}
	text, err := answer.Await(ctx)
	if err != nil {
		text = "failed: " + err.Error()
	}
	return text, nil
}

// askingOn runs f on a hub in virtual time.
func askingOn(t *testing.T, o simhub.Options, f func(ctx context.Context, a *asking)) {
	t.Helper()
	a := &asking{}
	o.Registry = perdure.NewRegistry()
	perdure.AddActivity(o.Registry, "ask", a.ask)
	perdure.AddOrchestration(o.Registry, "asks", asks)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		a.hub, a.client = h, client.New(h.Provider)
		f(ctx, a)
	})
}

// begin starts an instance, and serves it until its activity is pending.
func (a *asking) begin(q question) provider.Instance {
	a.t.Helper()
	in := a.start("asks", q)
	a.serveFor(q.Takes + 10*time.Second)
	return in
}

func (a *asking) complete(n int, result string) error {
	return a.client.CompleteActivity(a.t.Context(), a.token(n), result)
}

// beatWhile sends a heartbeat a minute while the functions run, for so many minutes.
func (a *asking) beatWhile(ctx context.Context, token string, minutes int) {
	go func() {
		for range minutes {
			if _, err := a.client.HeartbeatActivity(ctx, token, nil); err != nil {
				a.t.Error(err)
			}
			time.Sleep(time.Minute)
		}
	}()
	a.serveFor(time.Duration(minutes) * time.Minute)
}

// wantEnd fails unless an instance has ended with a text, which it need not be all of.
func (a *asking) wantEnd(in provider.Instance, want string) {
	a.t.Helper()
	end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID)
	if err != nil || !strings.Contains(string(end.Output), want) {
		a.t.Errorf("ended with %s, want %q, %v", end.Output, want, err)
	}
}

// wantOpen fails if an instance has ended.
func (a *asking) wantOpen(in provider.Instance) {
	a.t.Helper()
	if end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID); err == nil {
		a.t.Fatalf("it has ended with %s", end.Output)
	}
}

func wantProblem(t *testing.T, err error, want client.TokenErrorReason) {
	t.Helper()
	if got, ok := errors.AsType[*client.TokenError](err); !ok || got.Reason != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestR26AnActivityIsCompletedFromOutside(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	askingOn(t, simhub.Options{Logger: log}, func(ctx context.Context, a *asking) {
		in := a.begin(question{})
		a.serveFor(48 * time.Hour)
		a.wantOpen(in)
		if r := a.retryOf(in); r.Pending == nil || r.Attempt != 1 || !r.NextCheckAt.IsZero() || r.Pending.Name != "ask" {
			t.Errorf("%+v", r)
		}
		p, err := a.client.Pending(ctx, in.InstanceID, "", 0)
		if err != nil || p.Total != 1 || p.Items[0].ResultPendingSince.IsZero() || p.Items[0].NoWorker || p.Items[0].LastError != nil || p.Items[0].Attempt != 1 {
			t.Errorf("%+v, %v", p, err)
		}

		if err := a.complete(0, "forty-two"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "forty-two")
		wantProblem(t, a.complete(0, "again"), client.TokenExecutionEnded)
		a.checkRest()
		if n := len(a.handedOver()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		if token := a.token(0); strings.Contains(logged.String(), token[3:40]) {
			t.Error("the token is in the log")
		}
	})
}

func TestR26ATokenSaysWhyItDoesNothing(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Every: time.Minute})
		good := a.token(0)
		for _, bad := range []string{"", "c1", "c1.1.", good[:len(good)-1], good + "A", strings.Replace(good, "c1.", "w1.", 1), "c1.9" + good[4:], strings.Repeat("x", 10_000)} {
			err := a.client.CompleteActivity(ctx, bad, "no")
			wantProblem(t, err, client.TokenInvalid)
			if !errors.Is(err, provider.ErrInvalidToken) || bad != "" && len(bad) > 5 && strings.Contains(err.Error(), bad) {
				t.Errorf("%v", err)
			}
		}
		w := provider.WorkItem{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Attempt: 1, Queue: "default"}
		work, err := a.Provider.VerifyCompletionToken(ctx, provider.NewTokens("elsewhere", provider.NewTokenKey("1", make([]byte, 32))).SignCompletion(&w))
		if foreign, ok := errors.AsType[*provider.ForeignTokenError](err); !ok || foreign.Hub != "elsewhere" || work.ActivityID != 0 {
			t.Errorf("%+v, %v", work, err)
		}

		if err := a.client.FailActivity(ctx, good, errors.New("not me")); err != nil {
			t.Fatal(err)
		}
		a.serveFor(2 * time.Minute)
		err = a.client.CompleteActivity(ctx, good, "late")
		wantProblem(t, err, client.TokenSuperseded)
		if got, _ := errors.AsType[*client.TokenError](err); got.CurrentAttempt != 2 || got.InstanceID != in.InstanceID || got.ActivityID != 3 {
			t.Errorf("%+v", got)
		}
		_, err = a.client.HeartbeatActivity(ctx, good, nil)
		wantProblem(t, err, client.TokenSuperseded)
		wantProblem(t, a.client.FailActivity(ctx, good, errors.New("late")), client.TokenSuperseded)
		if a.token(1) == good {
			t.Error("two attempts have one token")
		}
		if err := a.complete(1, "second"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "second")
		for _, err := range []error{a.complete(1, "x"), a.client.FailActivity(ctx, a.token(1), errors.New("x"))} {
			wantProblem(t, err, client.TokenExecutionEnded)
		}
		if err := a.client.Purge(ctx, in.InstanceID); err != nil {
			t.Fatal(err)
		}
		wantProblem(t, a.complete(1, "x"), client.TokenExecutionEnded)
		_, err = a.client.HeartbeatActivity(ctx, a.token(1), "where")
		wantProblem(t, err, client.TokenExecutionEnded)
		if left := a.item("x#"+in.ExecutionID, "a#0000000003"); len(left) > 0 {
			t.Errorf("%v is left of a purged instance", left)
		}
	})
}

// The activity has ended, and its execution goes on.
func TestR26ATokenOfAnActivityThatHasEndedSaysSo(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{GivesUp: time.Hour})
		if err := a.complete(0, "once"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantOpen(in)
		wantProblem(t, a.complete(0, "twice"), client.TokenActivityEnded)
		wantProblem(t, a.client.FailActivity(ctx, a.token(0), errors.New("twice")), client.TokenActivityEnded)
		a.serveFor(2 * time.Hour)
		a.wantEnd(in, "once")
	})
}

// A result that could not be sent has not ended its attempt, of which there were heartbeats: it is sent again.
func TestR26AResultThatCouldNotBeSentIsSentAgain(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: time.Hour})
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		away := true
		a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			if c.Service == "SQS" && away {
				return errors.New("refused")
			}
			return next()
		})
		if err := a.complete(0, "lost"); err == nil {
			t.Fatal("it was sent")
		}
		away = false
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), "still there"); err != nil {
			t.Error(err)
		}
		if err := a.complete(0, "sent"); err != nil {
			t.Fatal(err)
		}
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), "still there") // before a turn has taken the result
		wantProblem(t, err, client.TokenActivityEnded)
		a.serveFor(time.Minute)
		a.wantEnd(in, "sent")
	})
}

// Interleaving: the holder completes before the activity has returned ErrPending, or an error.
func TestR26AHolderMayBeFasterThanTheActivity(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]question{
		"pending":              {Takes: time.Minute, StartToClose: time.Hour},
		"an error":             {Takes: time.Minute, Fails: true},
		"an error, with retry": {Takes: time.Minute, Fails: true, Every: time.Minute},
		"waited for":           {Takes: time.Minute, Waited: true, StartToClose: time.Hour},
	} {
		for _, together := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", together), func(t *testing.T) {
				t.Parallel()
				askingOn(t, simhub.Options{}, func(_ context.Context, a *asking) {
					in := a.start("asks", q)
					a.serveFor(30 * time.Second)
					if !together {
						if err := a.complete(0, "early"); err != nil {
							t.Fatal(err)
						}
						a.serveFor(10 * time.Minute)
					} else { // both messages are in one turn
						a.interfere(a.holdBack(a.Provider.Config().InboxURL, 30*time.Second))
						if err := a.complete(0, "early"); err != nil {
							t.Fatal(err)
						}
						a.serveFor(10 * time.Minute)
					}
					a.wantEnd(in, "early")
					if r := a.retryOf(in); r.Pending != nil || r.Attempt > 1 || len(a.handedOver()) > 1 {
						t.Errorf("%+v, ran %d times", r, len(a.handedOver()))
					}
					a.serveFor(2 * time.Hour)
					a.checkRest()
				})
			})
		}
	}
}

// holdBack lets nothing be received from a queue for a while.
func (a *asking) holdBack(queueURL string, d time.Duration) simaws.Interceptor {
	until := time.Now().Add(d + 15*time.Second)
	return func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*sqs.ReceiveMessageInput); ok && *in.QueueUrl == queueURL && time.Now().Before(until) {
			return errors.New("held back")
		}
		return next()
	}
}

func TestR26ALimitEndsAPendingAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		q    question
		at   time.Duration
		want string
	}{
		"start-to-close":          {question{StartToClose: 20 * time.Minute}, 20 * time.Minute, "start-to-close timeout expired"},
		"start-to-close of a day": {question{StartToClose: 24 * time.Hour, Takes: time.Minute}, 24 * time.Hour, "start-to-close timeout expired"},
		"no time for another":     {question{StartToClose: 5 * time.Minute, ScheduleToClose: 12 * time.Minute, Every: 10 * time.Minute}, 5 * time.Minute, "start-to-close timeout expired"},
		"heartbeat":               {question{Heartbeat: 5 * time.Minute, StartToClose: time.Hour}, 5 * time.Minute, "heartbeat timeout of 5m0s expired"},
		"schedule-to-close":       {question{ScheduleToClose: 10 * time.Minute}, 10*time.Minute + time.Second, "schedule-to-close"},
		"waited for":              {question{StartToClose: 20 * time.Minute, Waited: true}, 20 * time.Minute, "start-to-close timeout expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			askingOn(t, simhub.Options{}, func(_ context.Context, a *asking) {
				began := time.Now()
				in := a.begin(test.q)
				a.serveFor(test.at - time.Since(began) - time.Second)
				a.wantOpen(in)
				a.serveFor(10 * time.Second)
				a.wantEnd(in, test.want)
				wantProblem(t, a.complete(0, "late"), client.TokenExecutionEnded)
				a.serveFor(48 * time.Hour)
				a.checkRest()
			})
		})
	}
}

func TestR26APolicyTriesAgainWhatIsOutOfTime(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: 10 * time.Minute, Every: time.Minute})
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), map[string]int{"page": 7}); err != nil {
			t.Fatal(err)
		}
		a.serveFor(12 * time.Minute)
		runs := a.handedOver()
		if len(runs) != 2 || runs[1].attempt != 2 || runs[1].token == runs[0].token {
			t.Fatalf("%+v", runs)
		}
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), nil)
		wantProblem(t, err, client.TokenSuperseded)
		if r := a.retryOf(in); r.Attempt != 2 || r.Pending == nil || r.Error.Type != history.TypeTimeout {
			t.Errorf("%+v", r)
		}
		if err := a.complete(1, "done"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "done")
		a.serveFor(24 * time.Hour)
		a.checkRest()
	})
}

// A heartbeat puts the limit off, for as long as there are any, with one timer for each limit that passes.
func TestR26HeartbeatsKeepAPendingAttemptAlive(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		const hours = 6
		from := len(a.made())
		a.beatWhile(ctx, a.token(0), hours*60)
		timers := 0
		for _, c := range a.made()[from:] {
			if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *in.QueueUrl == a.Provider.Config().TimersURL {
				timers += len(in.Entries)
			}
		}
		if timers < hours*12-3 || timers > hours*60/4+3 {
			t.Errorf("%d timers in %d hours", timers, hours)
		}
		a.wantOpen(in)
		events := len(a.events(in))
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
		if events > 4 {
			t.Errorf("history has %d events", events)
		}
		a.checkRest()
	})
}

// Interleaving: a heartbeat comes between the look at the record and the decision that the attempt is out of time. It counts, or it is told
// that it does not.
func TestR26AHeartbeatBesideTheLookCounts(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
				in := a.begin(question{Heartbeat: 5 * time.Minute})
				var told, toldLate error
				a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					u, ok := c.Input.(*dynamodb.UpdateItemInput)
					if !ok || !strings.Contains(*u.UpdateExpression, "#overOf = ") {
						return next()
					}
					beat := func() {
						once.Do(func() {
							_, told = a.client.HeartbeatActivity(ctx, a.token(0), nil)
							if after {
								toldLate = a.complete(0, "late")
							}
						})
					}
					if !after {
						beat()
					}
					err := next()
					if after {
						beat()
					}
					return err
				})
				a.serveFor(5 * time.Minute)
				if !after {
					a.wantOpen(in)
					if told != nil {
						t.Errorf("told %v", told)
					}
					a.serveFor(4 * time.Minute)
					a.wantOpen(in)
					a.serveFor(time.Minute)
				} else {
					wantProblem(t, told, client.TokenActivityEnded)
					wantProblem(t, toldLate, client.TokenActivityEnded)
				}
				a.wantEnd(in, "heartbeat timeout")
				a.checkRest()
			})
		})
	}
}

// Interleaving: a limit fires while the completion is in the inbox. The first message decides, and there is one outcome.
func TestR26ALimitBesideACompletion(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			askingOn(t, simhub.Options{}, func(_ context.Context, a *asking) {
				in := a.begin(question{StartToClose: 5 * time.Minute, Every: every})
				a.serveFor(4*time.Minute + 40*time.Second)
				a.interfere(a.holdBack(a.Provider.Config().InboxURL, time.Minute))
				if err := a.complete(0, "just in time"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(10 * time.Minute)
				a.wantEnd(in, "just in time")
				if n := len(a.handedOver()); n != 1 {
					t.Errorf("it ran %d times", n)
				}
				a.checkRest()
			})
		})
	}
}

func TestR26AFailureThatIsSentTwiceIsOneNextAttempt(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Every: time.Minute})
		a.interfere(a.holdBack(a.Provider.Config().InboxURL, 10*time.Second))
		for _, why := range []string{"no", "no", "another no"} {
			if err := a.client.FailActivity(ctx, a.token(0), errors.New(why)); err != nil {
				t.Fatal(err)
			}
		}
		a.serveFor(10 * time.Minute)
		if runs := a.handedOver(); len(runs) != 2 || a.retryOf(in).Attempt != 2 || a.retryOf(in).Error.Message != "no" {
			t.Fatalf("%+v, %+v", runs, a.retryOf(in))
		}
		if err := a.client.FailActivity(ctx, a.token(1), perdure.NonRetryable(errors.New("never"))); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "never")
		if err := a.client.FailActivity(ctx, a.token(1), perdure.ErrPending); err == nil {
			t.Error("an attempt failed with ErrPending")
		}
		a.checkRest()
	})
}

// The activity is cancelled while it is pending: nobody waits for its end, the holder hears it, and what it sends is recorded.
func TestR26AHolderHearsACancel(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{StartToClose: time.Hour, GivesUp: 5 * time.Minute})
		if c, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil || c.Requested {
			t.Fatalf("%+v, %v", c, err)
		}
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "failed: ")
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), nil)
		wantProblem(t, err, client.TokenExecutionEnded) // the instance is over, too
		a.serveFor(2 * time.Hour)
		a.checkRest()
	})
}

// The cancelled activity is waited for: until its holder ends it, or its grace is over.
func TestR26TheEndOfAPendingActivityIsWaitedFor(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Minute
	for name, test := range map[string]struct {
		end  func(a *asking) error
		want string
		how  string
	}{
		"completed": {func(a *asking) error { return a.complete(0, "paid") }, "returned", history.OutcomeReturned},
		"failed":    {func(a *asking) error { return a.client.FailActivity(a.t.Context(), a.token(0), errors.New("undone")) }, "returned", history.OutcomeReturned},
		"given up":  {nil, "cancelled", history.OutcomeAbandoned},
	} {
		for _, every := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(name, " ", every), func(t *testing.T) {
				t.Parallel()
				askingOn(t, simhub.Options{CancellationGracePeriod: grace}, func(ctx context.Context, a *asking) {
					in := a.begin(question{Waited: true, GivesUp: time.Minute, Every: every})
					a.serveFor(time.Minute)
					a.wantOpen(in)
					if c, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil || !c.Requested {
						t.Fatalf("%+v, %v", c, err)
					}
					if test.end != nil {
						if err := test.end(a); err != nil {
							t.Fatal(err)
						}
						a.serveFor(time.Second)
					} else {
						a.serveFor(grace - 20*time.Second)
						a.wantOpen(in)
						a.serveFor(30 * time.Second)
					}
					a.wantEnd(in, test.want)
					if n := a.cancelNote(in); n.Outcome != test.how || n.SeenAt == nil {
						t.Errorf("ended as %q, and saw the cancel at %v", n.Outcome, n.SeenAt)
					}
					a.serveFor(2 * time.Hour)
					a.checkRest()
				})
			})
		}
	}
}

// The cancel is decided before the worker has handed the activity over.
func TestR26APendingActivityThatIsCancelledBeforeHasItsGrace(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{CancellationGracePeriod: 3 * time.Minute}, func(_ context.Context, a *asking) {
		in := a.start("asks", question{Waited: true, GivesUp: time.Minute, Takes: 2 * time.Minute})
		a.serveFor(3*time.Minute + 50*time.Second)
		a.wantOpen(in)
		a.serveFor(30 * time.Second)
		a.wantEnd(in, "cancelled")
		if how := a.endedAs(in); how != history.OutcomeAbandoned {
			t.Errorf("ended as %q", how)
		}
		a.checkRest()
	})
}

// endedAs is how the activity of an instance ended that was cancelled.
func (a *asking) endedAs(in provider.Instance) string { return a.cancelNote(in).Outcome }

// cancelNote is what its end says of the cancel.
func (a *asking) cancelNote(in provider.Instance) (n history.CancelDetails) {
	a.t.Helper()
	for _, e := range a.events(in) {
		if (e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed) && e.Cancel != nil {
			return *e.Cancel
		}
	}
	return n
}

// handsOver reports whether a call sends that an attempt is pending.
func handsOver(c simaws.Call) bool {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	return ok && len(in.Entries) > 0 && strings.Contains(*in.Entries[0].MessageBody, `"kind":"activityPending"`)
}

// The worker dies after it has sent that the attempt is pending, and before its record is deleted: the code does not run beside its request.
func TestR26AWorkerThatDiesBehindItsHandoverRunsNothingAgain(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprint(waited), func(t *testing.T) {
			t.Parallel()
			intercept, crashed := crashOnce(true, handsOver)
			askingOn(t, simhub.Options{Intercept: intercept}, func(_ context.Context, a *asking) {
				in := a.begin(question{StartToClose: 2 * time.Hour, Waited: waited})
				by := a.retryOf(in).NextCheckID
				a.serveFor(time.Hour)
				if r := a.retryOf(in); !crashed.Load() || len(a.handedOver()) != 1 || r.NextCheckID != by || by == "" {
					t.Errorf("ran %d times, %+v", len(a.handedOver()), r)
				}
				if err := a.complete(0, "once"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(3 * time.Hour)
				a.wantEnd(in, "once")
				a.checkRest()
			})
		})
	}
}

// The worker dies before it has sent that the attempt is pending: the code runs again, with the same token, which the first holder has.
func TestR26AWorkerThatDiesBeforeItsHandoverRunsAgainWithTheSameToken(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashOnce(false, func(c simaws.Call) bool {
		u, ok := c.Input.(*dynamodb.UpdateItemInput)
		return ok && strings.Contains(*u.UpdateExpression, "#pendingOf")
	})
	askingOn(t, simhub.Options{Intercept: intercept}, func(_ context.Context, a *asking) {
		in := a.begin(question{})
		a.serveFor(time.Hour)
		runs := a.handedOver()
		if !crashed.Load() || len(runs) != 2 || runs[0].token != runs[1].token {
			t.Fatalf("%+v", runs)
		}
		if err := a.complete(0, "the first"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "the first")
		a.checkRest()
	})
}

// The last heartbeat of its worker counts for an attempt that is handed over then, and its details are kept.
func TestR26TheHeartbeatsOfItsWorkerCount(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		began := time.Now()
		in := a.begin(question{Heartbeat: 5 * time.Minute, Takes: 4 * time.Minute, Beats: true})
		if r, err := a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil || string(r.Details) != `"there"` {
			t.Errorf("%+v, %v", r, err)
		}
		a.serveFor(9*time.Minute - time.Since(began) - time.Second)
		a.wantOpen(in)
		a.serveFor(20 * time.Second)
		a.wantEnd(in, "heartbeat timeout of 5m0s expired")
		a.checkRest()
	})
}

// The first attempt was out of time, and whoever had its token may still be at it: the end of the second, which is cancelled, is not all there is to wait for.
func TestR26AnAttemptThatWasOutOfTimeIsGivenUpForTheWait(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{CancellationGracePeriod: 10 * time.Minute}, func(_ context.Context, a *asking) {
		in := a.begin(question{Waited: true, StartToClose: 5 * time.Minute, Every: time.Minute, GivesUp: 8 * time.Minute})
		a.serveFor(9 * time.Minute)
		a.wantOpen(in)
		if err := a.complete(1, "the second"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "cancelled")
		if how := a.endedAs(in); how != history.OutcomeAbandoned {
			t.Errorf("ended as %q", how)
		}
		a.serveFor(time.Hour)
		a.checkRest()
	})
}

// The holder of a cancelled attempt, whose end is waited for, is silent for too long: that is the end, and its policy tries nothing again.
func TestR26ACancelledAttemptThatIsOutOfTimeIsTheLast(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{CancellationGracePeriod: time.Hour}, func(_ context.Context, a *asking) {
		in := a.begin(question{Waited: true, Heartbeat: 2 * time.Minute, Every: time.Minute, GivesUp: time.Minute})
		a.serveFor(time.Minute)
		a.wantOpen(in)
		a.serveFor(time.Minute)
		a.wantEnd(in, "failed")
		a.serveFor(2 * time.Hour)
		if n := len(a.handedOver()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		a.checkRest()
	})
}

// A timer of another time than the next look's, as one of before that was late, moves nothing on, though there was a heartbeat since.
func TestR26ATimerOfAnotherTimeMovesNothingOn(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		a.serveFor(time.Minute)
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		before := a.retryOf(in)
		other := before.NextCheckAt.Add(-2 * time.Minute)
		a.send(provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, TimerID: 3, Attempt: 1, FireAt: &other,
		})
		a.serveFor(time.Minute)
		if r := a.retryOf(in); !r.NextCheckAt.Equal(before.NextCheckAt) || r.NextCheckID != before.NextCheckID {
			t.Errorf("the next look was at %v by %s, and is at %v by %s", before.NextCheckAt, before.NextCheckID, r.NextCheckAt, r.NextCheckID)
		}
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
	})
}

// For half an hour it cannot be written beside an activity that it is pending. One whose end is waited for goes back to its queue: a copy must not send an
// end while somebody has the token. Any other is handed over all the same.
func TestR26WhatCannotBeWrittenIsNotHandedOverWhereTheEndIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprint("waited ", waited), func(t *testing.T) {
			t.Parallel()
			askingOn(t, simhub.Options{}, func(_ context.Context, a *asking) {
				until := time.Now().Add(30 * time.Minute)
				a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if u, ok := c.Input.(*dynamodb.UpdateItemInput); ok && strings.Contains(*u.UpdateExpression, "#pendingOf") && time.Now().Before(until) {
						return errors.New("refused")
					}
					return next()
				})
				in := a.begin(question{Waited: waited})
				a.serveFor(10 * time.Minute)
				if p := a.retryOf(in).Pending; p == nil != waited {
					t.Errorf("after ten minutes: %+v", p)
				}
				a.serveFor(time.Hour)
				if p := a.retryOf(in).Pending; p == nil {
					t.Error("it is not handed over")
				}
				if err := a.complete(0, "the first"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(time.Minute)
				a.wantEnd(in, "the first")
			})
		})
	}
}

// Its worker has stopped it, as its invocation was about to end, before it says that it is pending: it may be another's by now, so it is begun again, and that
// run is the one that is handed over.
func TestR26WhatItsWorkerHasStoppedIsBegunAgain(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{InvocationLimit: time.Minute}, func(_ context.Context, a *asking) {
		in := a.start("asks", question{Takes: 55 * time.Second, Once: true})
		a.serveFor(30 * time.Minute)
		runs := a.handedOver()
		if len(runs) != 2 || runs[0].token != runs[1].token {
			t.Fatalf("%+v", runs)
		}
		if p := a.retryOf(in).Pending; p == nil || p.Since.Before(runs[1].at) {
			t.Errorf("%+v, and the second run began at %v", p, runs[1].at)
		}
		if err := a.complete(1, "the second"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "the second")
		a.checkRest()
	})
}

// A process dies, or a call fails, at any call of an attempt that times out, is tried again, is kept alive and completed: it ends as without.
func TestR26ACrashAtAnyCallOfAPendingActivity(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int64) (simaws.Interceptor, func() int64){
		"dies before": func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.CrashAt(n, false); return i, c.Load },
		"dies after":  func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.CrashAt(n, true); return i, c.Load },
		"fails":       func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.FailAt(n, false); return i, c.Load },
		"is lost":     func(n int64) (simaws.Interceptor, func() int64) { i, c := simhub.FailAt(n, true); return i, c.Load },
	} {
		for _, q := range []question{
			{Heartbeat: 10 * time.Minute, Every: time.Minute, StartToClose: 3 * time.Hour},
			{Heartbeat: 10 * time.Minute, Every: time.Minute, Waited: true},
		} {
			t.Run(fmt.Sprint(name, " ", q.Waited), func(t *testing.T) {
				t.Parallel()
				for n, more := int64(1), true; more; n += shortrun.Step(crashStep) {
					intercept, calls := fault(n)
					askingOn(t, simhub.Options{Environments: 2, Intercept: intercept}, func(_ context.Context, a *asking) { a.throughTrouble(n, q) })
					more = calls() >= n && !t.Failed()
				}
			})
		}
	}
}

// throughTrouble lets a first attempt run out of time, keeps the second alive for a while, and completes it.
func (a *asking) throughTrouble(n int64, q question) {
	in := a.start("asks", q)
	a.serveFor(40 * time.Minute)
	runs := a.handedOver()
	last := runs[len(runs)-1]
	if last.attempt > 3 || last.attempt < 2 {
		a.t.Errorf("call %d: %+v", n, runs)
	}
	token := func() string { runs := a.handedOver(); return runs[len(runs)-1].token }
	a.insist(func() error { _, err := a.client.HeartbeatActivity(a.t.Context(), token(), "there"); return err })
	a.serveFor(time.Minute)
	a.insist(func() error { return a.client.CompleteActivity(a.t.Context(), token(), "in the end") })
	a.serveFor(12 * time.Hour)
	end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID)
	if err != nil || !strings.Contains(string(end.Output), "in the end") && !strings.Contains(string(end.Output), "timeout") {
		a.t.Errorf("call %d: ended with %s, %v", n, end.Output, err)
	}
	times := map[int]int{}
	for _, r := range a.handedOver() {
		if times[r.attempt]++; times[r.attempt] > 2 || r.attempt > 3 {
			a.t.Errorf("call %d: attempt %d ran %d times", n, r.attempt, times[r.attempt])
		}
	}
	if err := a.CheckRest(a.t.Context()); err != nil {
		a.t.Errorf("call %d: %v", n, err)
	}
}

// insist repeats a call as a holder would.
func (a *asking) insist(call func() error) {
	for range 20 {
		err := call()
		if _, answered := errors.AsType[*client.TokenError](err); err == nil || answered {
			return
		}
		a.serveFor(5 * time.Second)
	}
	a.t.Error("a call does not get through")
}

// Every message arrives twice, and so does every work item: one timer, one attempt after another, one outcome.
func TestR26EveryMessageOfAPendingActivityTwice(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{Environments: 2}, func(ctx context.Context, a *asking) {
		a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
			in, ok := c.Input.(*sqs.SendMessageBatchInput)
			if ok && *in.QueueUrl == a.Provider.Config().TimersURL {
				if err := next(); err != nil {
					return err
				}
			}
			return next()
		})
		in := a.begin(question{Heartbeat: 5 * time.Minute, Every: time.Minute})
		a.beatWhile(ctx, a.token(0), 30)
		if n := len(a.handedOver()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		a.serveFor(8 * time.Minute)
		if n := len(a.handedOver()); n != 2 || a.retryOf(in).Attempt != 2 {
			t.Errorf("it ran %d times, %+v", n, a.retryOf(in))
		}
		if err := a.complete(1, "once"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Hour)
		a.wantEnd(in, "once")
		a.checkRest()
	})
}

// The queues are lost with all that was in them, and a reconciliation goes on with what the table has: the time of a pending attempt is kept.
func TestR26AReconciliationKeepsTheTimeOfAPendingAttempt(t *testing.T) {
	t.Parallel()
	askingOn(t, simhub.Options{}, func(ctx context.Context, a *asking) {
		in := a.begin(question{StartToClose: time.Hour})
		a.Close()
		reg := perdure.NewRegistry()
		perdure.AddActivity(reg, "ask", a.ask)
		perdure.AddOrchestration(reg, "asks", asks)
		second, err := simhub.New(simhub.Options{Registry: reg, On: a.Hub, NewQueues: "second-"})
		if err != nil {
			t.Fatal(err)
		}
		a.Hub, a.client = second, client.New(second.Provider)
		if _, err := second.Provider.ReconcileInstance(ctx, in.InstanceID, provider.ReconcileOptions{Run: "r-1"}); err != nil {
			t.Fatal(err)
		}
		a.serveFor(50 * time.Minute)
		a.wantOpen(in)
		if n := len(a.handedOver()); n != 1 {
			t.Errorf("it ran %d times", n)
		}
		a.serveFor(15 * time.Minute)
		a.wantEnd(in, "start-to-close")
	})
}

// handedFor is how long the one attempt of hands-over may take that is not tried again.
const handedFor = 12 * time.Hour

// handsOverAndWaits waits for an activity that is completed from outside: of its first attempt with it, or of its second, once the first was
// out of time.
func handsOverAndWaits(ctx *perdure.OrchestrationContext, late bool) (string, error) {
	opts := []perdure.ActivityCallOption{perdure.WithStartToCloseTimeout(handedFor)}
	if late {
		opts = []perdure.ActivityCallOption{perdure.WithStartToCloseTimeout(5 * time.Minute), perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute})}
	}
	return perdure.CallActivityByName[string](ctx, "hand-over", late, opts...).Await(ctx)
}

// answeredMeanwhile answers what an instance waits for as #3.
func answeredMeanwhile(h *hub, in provider.Instance) { answersMeanwhile(h, in, 1, 3) }

// answersMeanwhile completes an activity that an instance has scheduled in a segment, after seven minutes: with the token of whichever attempt is the current one
// by then, and insistently, as who is not sure whether a call came through.
func answersMeanwhile(h *hub, in provider.Instance, segment, activityID int64) {
	c, begun := client.New(h.Provider), time.Now()
	call := func(attempt int) error {
		w := provider.WorkItem{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: segment, ActivityID: activityID, Attempt: attempt, Queue: "default"}
		tokens, err := h.Provider.CompletionTokens(h.t.Context())
		if err != nil {
			return err
		}
		token := tokens.SignCompletion(&w)
		if time.Since(begun) > 7*time.Minute {
			return c.CompleteActivity(h.t.Context(), token, "answered")
		}
		_, err = c.HeartbeatActivity(h.t.Context(), token, nil)
		return err
	}
	go func() {
		attempt := 1
		for range 200 {
			time.Sleep(10 * time.Second)
			switch problem, _ := errors.AsType[*client.TokenError](call(attempt)); {
			case problem == nil:
			case problem.Reason == client.TokenSuperseded:
				attempt = problem.CurrentAttempt
			case problem.Reason == client.TokenExecutionEnded && time.Since(begun) > 7*time.Minute:
				return
			}
		}
	}()
}
