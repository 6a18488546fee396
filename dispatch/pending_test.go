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
	"github.com/perdure/perdure/provider/worktoken"
)

// question is the input of the activity "approve", which passes its completion token to the test.
type question struct {
	StartToClose, Heartbeat, ScheduleToClose, Every time.Duration
	Waited                                          bool
	// Takes is the time for which the activity runs after it has passed its token. Once limits Takes to the first run.
	// Fails makes the activity return an error.
	Takes time.Duration
	Once  bool
	// Heartbeats makes the activity send a heartbeat before it returns.
	Heartbeats bool
	Fails      bool
	// CancelsAfter is the time after which the orchestration cancels the activity. 0 means never.
	CancelsAfter time.Duration
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
		opts = append(opts, perdure.WithRetry(perdure.RetryPolicy{
			MaxAttempts: 3, InitialInterval: q.Every, BackoffCoefficient: 1, MaxInterval: q.Every,
		}))
	}
	if q.Waited {
		opts = append(opts, perdure.WaitForCancellation())
	}
	return opts
}

// passedToken is a completion token that the activity passed to the test.
type passedToken struct {
	token   string
	attempt int
	at      time.Time
}

// tokenHub is a hub whose activity "approve" is completed by the test.
type tokenHub struct {
	*hub

	client *client.Client
	mu     sync.Mutex
	tokens []passedToken
}

func (a *tokenHub) approve(ctx context.Context, q question) (string, error) {
	info := perdure.ActivityInfoFrom(ctx)
	a.mu.Lock()
	a.tokens = append(a.tokens, passedToken{info.CompletionToken, info.Attempt, time.Now()})
	first := len(a.tokens) == 1
	a.mu.Unlock()
	if first || !q.Once {
		time.Sleep(q.Takes)
	}
	if q.Heartbeats {
		perdure.Heartbeat(ctx, "there")
	}
	if q.Fails {
		return "", errors.New("changed its mind")
	}
	return "", fmt.Errorf("asked: %w", perdure.ErrPending)
}

// passedTokens returns the tokens of all runs so far.
func (a *tokenHub) passedTokens() []passedToken {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]passedToken(nil), a.tokens...)
}

// token returns the token of the n-th run, starting at 0.
func (a *tokenHub) token(n int) string {
	a.t.Helper()
	if tokens := a.passedTokens(); n < len(tokens) {
		return tokens[n].token
	}
	a.t.Fatalf("got %d runs of the activity, too few", len(a.passedTokens()))
	return ""
}

func awaitApproval(ctx *perdure.OrchestrationContext, q question) (string, error) {
	scope, cancel := perdure.WithCancel(ctx)
	response := perdure.CallActivityByName[string](scope, "approve", q, q.options()...)
	if q.CancelsAfter > 0 {
		_ = perdure.Sleep(ctx, q.CancelsAfter)
		cancel()
	}
	text, err := response.Await(ctx)
	if err != nil {
		text = "failed: " + err.Error()
	}
	return text, nil
}

// withTokenHub runs f on a hub in virtual time.
func withTokenHub(t *testing.T, o simhub.Options, f func(ctx context.Context, a *tokenHub)) {
	t.Helper()
	a := &tokenHub{}
	o.Registry = perdure.NewRegistry()
	perdure.AddActivity(o.Registry, "approve", a.approve)
	perdure.AddOrchestration(o.Registry, "awaits-approval", awaitApproval)
	inBubble(t, o, func(ctx context.Context, h *hub) {
		a.hub, a.client = h, client.New(h.Provider)
		f(ctx, a)
	})
}

// begin starts an instance, and runs the hub until its activity is pending.
func (a *tokenHub) begin(q question) provider.Instance {
	a.t.Helper()
	in := a.start("awaits-approval", q)
	a.serveFor(q.Takes + 10*time.Second)
	return in
}

func (a *tokenHub) complete(n int, result string) error {
	return a.client.CompleteActivity(a.t.Context(), a.token(n), result)
}

// heartbeatForMinutes sends a heartbeat every minute while the hub runs for the given minutes.
func (a *tokenHub) heartbeatForMinutes(ctx context.Context, token string, minutes int) {
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

// wantEnd fails the test unless an instance has ended with an output that contains want.
func (a *tokenHub) wantEnd(in provider.Instance, want string) {
	a.t.Helper()
	end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID)
	if err != nil || !strings.Contains(string(end.Output), want) {
		a.t.Errorf("ended with %s, want %q, error %v", end.Output, want, err)
	}
}

// wantOpen fails the test if an instance has ended.
func (a *tokenHub) wantOpen(in provider.Instance) {
	a.t.Helper()
	if end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID); err == nil {
		a.t.Fatalf("instance has ended with %s, want running", end.Output)
	}
}

func wantProblem(t *testing.T, err error, want client.TokenErrorReason) {
	t.Helper()
	if got, ok := errors.AsType[*client.TokenError](err); !ok || got.Reason != want {
		t.Errorf("got error %v, want token error %s", err, want)
	}
}

func TestR26_pendingActivity_isCompletedByToken(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	withTokenHub(t, simhub.Options{Logger: log}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{})
		a.serveFor(48 * time.Hour)
		a.wantOpen(in)
		if r := a.retryOf(in); r.Pending == nil || r.Attempt != 1 || !r.NextCheckAt.IsZero() ||
			r.Pending.Name != "approve" {
			t.Errorf("got retry state %+v, want a pending attempt 1 without a check", r)
		}
		p, err := a.client.Pending(ctx, in.InstanceID, "", 0)
		if err != nil || p.Total != 1 || p.Items[0].ResultPendingSince.IsZero() || p.Items[0].NoWorker ||
			p.Items[0].LastError != nil || p.Items[0].Attempt != 1 {
			t.Errorf("got pending activities %+v, error %v", p, err)
		}

		if err := a.complete(0, "forty-two"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "forty-two")
		wantProblem(t, a.complete(0, "again"), client.TokenExecutionEnded)
		a.checkIdle()
		if n := len(a.passedTokens()); n != 1 {
			t.Errorf("got %d runs, want 1", n)
		}
		if token := a.token(0); strings.Contains(logged.String(), token[3:40]) {
			t.Error("log contains the token")
		}
	})
}

func TestR26_invalidOrLateToken_errorNamesTheReason(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Every: time.Minute})
		good := a.token(0)
		for _, bad := range []string{
			"", "c1", "c1.1.", good[:len(good)-1], good + "A",
			strings.Replace(good, "c1.", "w1.", 1), "c1.9" + good[4:], strings.Repeat("x", 10_000),
		} {
			err := a.client.CompleteActivity(ctx, bad, "no")
			wantProblem(t, err, client.TokenInvalid)
			if !errors.Is(err, provider.ErrInvalidToken) || bad != "" && len(bad) > 5 &&
				strings.Contains(err.Error(), bad) {
				t.Errorf("got error %v, want ErrInvalidToken without the token", err)
			}
		}
		w := provider.WorkItem{
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1, ActivityID: 3, Attempt: 1,
			Queue: "default",
		}
		work, err := a.Provider.VerifyCompletionToken(ctx,
			worktoken.NewSigner("elsewhere", worktoken.NewKey("1", make([]byte, 32))).SignCompletion(&w))
		if foreign, ok := errors.AsType[*provider.ForeignTokenError](err); !ok || foreign.Hub != "elsewhere" ||
			work.ActivityID != 0 {
			t.Errorf("got %+v, error %v, want ForeignTokenError", work, err)
		}

		if err := a.client.FailActivity(ctx, good, errors.New("not me")); err != nil {
			t.Fatal(err)
		}
		a.serveFor(2 * time.Minute)
		err = a.client.CompleteActivity(ctx, good, "late")
		wantProblem(t, err, client.TokenSuperseded)
		if got, _ := errors.AsType[*client.TokenError](err); got.CurrentAttempt != 2 ||
			got.InstanceID != in.InstanceID || got.ActivityID != 3 {
			t.Errorf("got token error %+v, want attempt 2 of activity 3", got)
		}
		_, err = a.client.HeartbeatActivity(ctx, good, nil)
		wantProblem(t, err, client.TokenSuperseded)
		wantProblem(t, a.client.FailActivity(ctx, good, errors.New("late")), client.TokenSuperseded)
		if a.token(1) == good {
			t.Error("two attempts have the same token")
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
			t.Errorf("purged instance still has %v", left)
		}
	})
}

// The activity has ended, and its execution continues.
func TestR26_tokenOfEndedActivity_isRejected(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{CancelsAfter: time.Hour})
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

// A result that could not be sent does not end its attempt, even after heartbeats. The caller can resend it.
func TestR26_resultSendFails_canBeSentAgain(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
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
			t.Fatal("the send of the result did not fail")
		}
		away = false
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), "still there"); err != nil {
			t.Error(err)
		}
		if err := a.complete(0, "sent"); err != nil {
			t.Fatal(err)
		}
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), "still there") // before a turn has consumed the result
		wantProblem(t, err, client.TokenActivityEnded)
		a.serveFor(time.Minute)
		a.wantEnd(in, "sent")
	})
}

// Interleaving: the token holder completes the activity before its code returns ErrPending or an error.
func TestR26_completedBeforePending_endsOnce(t *testing.T) {
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
				withTokenHub(t, simhub.Options{}, func(_ context.Context, a *tokenHub) {
					in := a.start("awaits-approval", q)
					a.serveFor(30 * time.Second)
					if !together {
						if err := a.complete(0, "early"); err != nil {
							t.Fatal(err)
						}
						a.serveFor(10 * time.Minute)
					} else { // one turn consumes both messages
						a.interfere(a.failReceives(a.Provider.Config().InboxURL, 30*time.Second))
						if err := a.complete(0, "early"); err != nil {
							t.Fatal(err)
						}
						a.serveFor(10 * time.Minute)
					}
					a.wantEnd(in, "early")
					if r := a.retryOf(in); r.Pending != nil || r.Attempt > 1 || len(a.passedTokens()) > 1 {
						t.Errorf("got retry state %+v after %d runs, want one run and no pending attempt",
							r, len(a.passedTokens()))
					}
					a.serveFor(2 * time.Hour)
					a.checkIdle()
				})
			})
		}
	}
}

// failReceives makes receives from a queue fail for a while.
func (a *tokenHub) failReceives(queueURL string, d time.Duration) simaws.Interceptor {
	until := time.Now().Add(d + 15*time.Second)
	return func(_ context.Context, c simaws.Call, next func() error) error {
		if in, ok := c.Input.(*sqs.ReceiveMessageInput); ok && *in.QueueUrl == queueURL && time.Now().Before(until) {
			return errors.New("delayed")
		}
		return next()
	}
}

func TestR26_timeout_endsPendingAttempt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		q    question
		at   time.Duration
		want string
	}{
		"start-to-close": {
			question{StartToClose: 20 * time.Minute},
			20 * time.Minute,
			"start-to-close timeout expired",
		},
		"start-to-close of a day": {
			question{StartToClose: 24 * time.Hour, Takes: time.Minute},
			24 * time.Hour,
			"start-to-close timeout expired",
		},
		"no time for another": {question{
			StartToClose: 5 * time.Minute, ScheduleToClose: 12 * time.Minute,
			Every: 10 * time.Minute,
		}, 5 * time.Minute, "start-to-close timeout expired"},
		"heartbeat": {
			question{Heartbeat: 5 * time.Minute, StartToClose: time.Hour},
			5 * time.Minute,
			"heartbeat timeout of 5m0s expired",
		},
		"schedule-to-close": {
			question{ScheduleToClose: 10 * time.Minute},
			10*time.Minute + time.Second,
			"schedule-to-close",
		},
		"waited for": {
			question{StartToClose: 20 * time.Minute, Waited: true},
			20 * time.Minute,
			"start-to-close timeout expired",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(_ context.Context, a *tokenHub) {
				began := time.Now()
				in := a.begin(test.q)
				a.serveFor(test.at - time.Since(began) - time.Second)
				a.wantOpen(in)
				a.serveFor(10 * time.Second)
				a.wantEnd(in, test.want)
				wantProblem(t, a.complete(0, "late"), client.TokenExecutionEnded)
				a.serveFor(48 * time.Hour)
				a.checkIdle()
			})
		})
	}
}

func TestR26_pendingAttemptTimesOut_isRetried(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Heartbeat: 10 * time.Minute, Every: time.Minute})
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), map[string]int{"page": 7}); err != nil {
			t.Fatal(err)
		}
		a.serveFor(12 * time.Minute)
		runs := a.passedTokens()
		if len(runs) != 2 || runs[1].attempt != 2 || runs[1].token == runs[0].token {
			t.Fatalf("got runs %+v, want a second attempt with another token", runs)
		}
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), nil)
		wantProblem(t, err, client.TokenSuperseded)
		if r := a.retryOf(in); r.Attempt != 2 || r.Pending == nil || r.Error.Type != history.TypeTimeout {
			t.Errorf("got retry state %+v, want a pending attempt 2 after a timeout", r)
		}
		if err := a.complete(1, "done"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "done")
		a.serveFor(24 * time.Hour)
		a.checkIdle()
	})
}

// Each heartbeat extends the heartbeat timeout. There is one timer for each timeout period.
func TestR26_heartbeats_keepPendingAttemptOpen(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		const hours = 6
		from := len(a.made())
		a.heartbeatForMinutes(ctx, a.token(0), hours*60)
		timers := 0
		for _, c := range a.made()[from:] {
			if in, ok := c.Input.(*sqs.SendMessageBatchInput); ok && *in.QueueUrl == a.Provider.Config().TimersURL {
				timers += len(in.Entries)
			}
		}
		if timers < hours*12-3 || timers > hours*60/4+3 {
			t.Errorf("got %d timers in %d hours", timers, hours)
		}
		a.wantOpen(in)
		events := len(a.events(in))
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
		if events > 4 {
			t.Errorf("got %d history events, want at most 4", events)
		}
		a.checkIdle()
	})
}

// Interleaving: a heartbeat arrives between the read of the activity record and the write that times out the attempt.
// The heartbeat counts, or the holder receives an error.
func TestR26_heartbeatDuringTimeoutCheck_countsOrIsRejected(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
				in := a.begin(question{Heartbeat: 5 * time.Minute})
				var heartbeatErr, lateErr error
				a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					u, ok := c.Input.(*dynamodb.UpdateItemInput)
					if !ok || !strings.Contains(*u.UpdateExpression, "#overOf = ") {
						return next()
					}
					heartbeat := func() {
						once.Do(func() {
							_, heartbeatErr = a.client.HeartbeatActivity(ctx, a.token(0), nil)
							if after {
								lateErr = a.complete(0, "late")
							}
						})
					}
					if !after {
						heartbeat()
					}
					err := next()
					if after {
						heartbeat()
					}
					return err
				})
				a.serveFor(5 * time.Minute)
				if !after {
					a.wantOpen(in)
					if heartbeatErr != nil {
						t.Errorf("heartbeat: got error %v", heartbeatErr)
					}
					a.serveFor(4 * time.Minute)
					a.wantOpen(in)
					a.serveFor(time.Minute)
				} else {
					wantProblem(t, heartbeatErr, client.TokenActivityEnded)
					wantProblem(t, lateErr, client.TokenActivityEnded)
				}
				a.wantEnd(in, "heartbeat timeout")
				a.checkIdle()
			})
		})
	}
}

// Interleaving: a timeout fires while the completion is in the inbox. The first message decides, and there is one
// outcome.
func TestR26_timeoutAndCompletion_firstMessageWins(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{0, time.Minute} {
		t.Run(every.String(), func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(_ context.Context, a *tokenHub) {
				in := a.begin(question{StartToClose: 5 * time.Minute, Every: every})
				a.serveFor(4*time.Minute + 40*time.Second)
				a.interfere(a.failReceives(a.Provider.Config().InboxURL, time.Minute))
				if err := a.complete(0, "just in time"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(10 * time.Minute)
				a.wantEnd(in, "just in time")
				if n := len(a.passedTokens()); n != 1 {
					t.Errorf("got %d runs, want 1", n)
				}
				a.checkIdle()
			})
		})
	}
}

func TestR26_failureSentTwice_causesOneRetry(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Every: time.Minute})
		a.interfere(a.failReceives(a.Provider.Config().InboxURL, 10*time.Second))
		for _, why := range []string{"no", "no", "another no"} {
			if err := a.client.FailActivity(ctx, a.token(0), errors.New(why)); err != nil {
				t.Fatal(err)
			}
		}
		a.serveFor(10 * time.Minute)
		if runs := a.passedTokens(); len(runs) != 2 || a.retryOf(in).Attempt != 2 ||
			a.retryOf(in).Error.Message != "no" {
			t.Fatalf("got runs %+v, retry state %+v, want one retry", runs, a.retryOf(in))
		}
		if err := a.client.FailActivity(ctx, a.token(1), perdure.NonRetryable(errors.New("never"))); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "never")
		if err := a.client.FailActivity(ctx, a.token(1), perdure.ErrPending); err == nil {
			t.Error("FailActivity with ErrPending did not fail")
		}
		a.checkIdle()
	})
}

// A pending activity is cancelled without WaitForCancellation. The holder receives the cancel, and its messages are
// recorded.
func TestR26_pendingActivityCancelled_heartbeatReportsIt(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{StartToClose: time.Hour, CancelsAfter: 5 * time.Minute})
		if c, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil || c.Requested {
			t.Fatalf("got cancel state %+v, error %v, want no request", c, err)
		}
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "failed: ")
		_, err := a.client.HeartbeatActivity(ctx, a.token(0), nil)
		wantProblem(t, err, client.TokenExecutionEnded) // the instance has also ended
		a.serveFor(2 * time.Hour)
		a.checkIdle()
	})
}

// A cancelled activity with WaitForCancellation is awaited until its holder ends it, or the grace period ends.
func TestR26_awaitedPendingActivityCancelled_waitsForHolderOrGrace(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Minute
	for name, test := range map[string]struct {
		end  func(a *tokenHub) error
		want string
		how  string
	}{
		"completed": {func(a *tokenHub) error { return a.complete(0, "paid") }, "returned", history.OutcomeReturned},
		"failed": {func(a *tokenHub) error {
			return a.client.FailActivity(a.t.Context(), a.token(0), errors.New("undone"))
		}, "returned", history.OutcomeReturned},
		"given up": {nil, "cancelled", history.OutcomeAbandoned},
	} {
		for _, every := range []time.Duration{0, time.Hour} {
			t.Run(fmt.Sprint(name, " ", every), func(t *testing.T) {
				t.Parallel()
				withTokenHub(t, simhub.Options{CancellationGracePeriod: grace}, func(ctx context.Context, a *tokenHub) {
					in := a.begin(question{Waited: true, CancelsAfter: time.Minute, Every: every})
					a.serveFor(time.Minute)
					a.wantOpen(in)
					if c, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil || !c.Requested {
						t.Fatalf("got cancel state %+v, error %v, want a request", c, err)
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
					if n := a.cancelDetails(in); n.Outcome != test.how || n.SeenAt == nil {
						t.Errorf("got outcome %q, cancel observed at %v", n.Outcome, n.SeenAt)
					}
					a.serveFor(2 * time.Hour)
					a.checkIdle()
				})
			})
		}
	}
}

// The cancel is committed before the worker reports the activity as pending.
func TestR26_cancelledBeforePending_hasGracePeriod(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{CancellationGracePeriod: 3 * time.Minute}, func(_ context.Context, a *tokenHub) {
		in := a.start("awaits-approval", question{Waited: true, CancelsAfter: time.Minute, Takes: 2 * time.Minute})
		a.serveFor(3*time.Minute + 50*time.Second)
		a.wantOpen(in)
		a.serveFor(30 * time.Second)
		a.wantEnd(in, "cancelled")
		if how := a.endedAs(in); how != history.OutcomeAbandoned {
			t.Errorf("got outcome %q, want abandoned", how)
		}
		a.checkIdle()
	})
}

// endedAs returns the outcome of an instance's cancelled activity.
func (a *tokenHub) endedAs(in provider.Instance) string { return a.cancelDetails(in).Outcome }

// cancelDetails returns the cancel details in the end of a cancelled activity.
func (a *tokenHub) cancelDetails(in provider.Instance) (n history.CancelDetails) {
	a.t.Helper()
	for _, e := range a.events(in) {
		if (e.Kind == history.ActivityCompleted || e.Kind == history.ActivityFailed) && e.Cancel != nil {
			return *e.Cancel
		}
	}
	return n
}

// reportsPending reports whether a call sends a message that an attempt is pending.
func reportsPending(c simaws.Call) bool {
	in, ok := c.Input.(*sqs.SendMessageBatchInput)
	return ok && len(in.Entries) > 0 && strings.Contains(*in.Entries[0].MessageBody, `"kind":"activityPending"`)
}

// The worker crashes after it has reported the attempt as pending, and before it deletes the record. The code does not
// run again.
func TestR26_workerDiesAfterReportingPending_runsNothingAgain(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprint(waited), func(t *testing.T) {
			t.Parallel()
			intercept, crashed := crashOnce(true, reportsPending)
			withTokenHub(t, simhub.Options{Intercept: intercept}, func(_ context.Context, a *tokenHub) {
				in := a.begin(question{StartToClose: 2 * time.Hour, Waited: waited})
				checkID := a.retryOf(in).NextCheckID
				a.serveFor(time.Hour)
				if r := a.retryOf(in); !crashed.Load() || len(a.passedTokens()) != 1 || r.NextCheckID != checkID ||
					checkID == "" {
					t.Errorf("got %d runs, retry state %+v", len(a.passedTokens()), r)
				}
				if err := a.complete(0, "once"); err != nil {
					t.Fatal(err)
				}
				a.serveFor(3 * time.Hour)
				a.wantEnd(in, "once")
				a.checkIdle()
			})
		})
	}
}

// The worker crashes before it reports the attempt as pending. The code runs again with the same token, so the first
// holder can still complete the activity.
func TestR26_workerDiesBeforeReportingPending_runsAgainWithSameToken(t *testing.T) {
	t.Parallel()
	intercept, crashed := crashOnce(false, func(c simaws.Call) bool {
		u, ok := c.Input.(*dynamodb.UpdateItemInput)
		return ok && strings.Contains(*u.UpdateExpression, "#pendingOf")
	})
	withTokenHub(t, simhub.Options{Intercept: intercept}, func(_ context.Context, a *tokenHub) {
		in := a.begin(question{})
		a.serveFor(time.Hour)
		runs := a.passedTokens()
		if !crashed.Load() || len(runs) != 2 || runs[0].token != runs[1].token {
			t.Fatalf("got runs %+v, want 2 with the same token", runs)
		}
		if err := a.complete(0, "the first"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "the first")
		a.checkIdle()
	})
}

// The last heartbeat of the worker counts for an attempt that becomes pending, and its details are stored.
func TestR26_heartbeatOfWorker_countsForPendingAttempt(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		began := time.Now()
		in := a.begin(question{Heartbeat: 5 * time.Minute, Takes: 4 * time.Minute, Heartbeats: true})
		if r, err := a.Provider.ReadActivityRecord(ctx, in.ExecutionID, 3); err != nil ||
			string(r.Details) != `"there"` {
			t.Errorf("got activity record %+v, error %v, want the details", r, err)
		}
		a.serveFor(9*time.Minute - time.Since(began) - time.Second)
		a.wantOpen(in)
		a.serveFor(20 * time.Second)
		a.wantEnd(in, "heartbeat timeout of 5m0s expired")
		a.checkIdle()
	})
}

// The first attempt timed out, and its holder may still be working. The end of the second, cancelled attempt is
// therefore not the end of all work.
func TestR26_earlierAttemptTimedOut_awaitedCancelIsAbandoned(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{CancellationGracePeriod: 10 * time.Minute}, func(_ context.Context, a *tokenHub) {
		in := a.begin(question{
			Waited: true, StartToClose: 5 * time.Minute, Every: time.Minute, CancelsAfter: 8 * time.Minute,
		})
		a.serveFor(9 * time.Minute)
		a.wantOpen(in)
		if err := a.complete(1, "the second"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "cancelled")
		if how := a.endedAs(in); how != history.OutcomeAbandoned {
			t.Errorf("got outcome %q, want abandoned", how)
		}
		a.serveFor(time.Hour)
		a.checkIdle()
	})
}

// The holder of a cancelled, awaited attempt sends no heartbeat in time. This ends the activity, and the retry policy
// does not apply.
func TestR26_cancelledAttemptTimesOut_isNotRetried(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{CancellationGracePeriod: time.Hour}, func(_ context.Context, a *tokenHub) {
		in := a.begin(question{Waited: true, Heartbeat: 2 * time.Minute, Every: time.Minute, CancelsAfter: time.Minute})
		a.serveFor(time.Minute)
		a.wantOpen(in)
		a.serveFor(time.Minute)
		a.wantEnd(in, "failed")
		a.serveFor(2 * time.Hour)
		if n := len(a.passedTokens()); n != 1 {
			t.Errorf("got %d runs, want 1", n)
		}
		a.checkIdle()
	})
}

// A timer for a time other than the next check, for example a late earlier timer, does not move the check, even after a
// heartbeat.
func TestR26_timerOfAnotherTime_changesNothing(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{Heartbeat: 5 * time.Minute})
		a.serveFor(time.Minute)
		if _, err := a.client.HeartbeatActivity(ctx, a.token(0), nil); err != nil {
			t.Fatal(err)
		}
		before := a.retryOf(in)
		other := before.NextCheckAt.Add(-2 * time.Minute)
		a.send(provider.Message{
			Kind: provider.MessageTimerFired, InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: 1,
			TimerID: 3, Attempt: 1, FireAt: &other,
		})
		a.serveFor(time.Minute)
		if r := a.retryOf(in); !r.NextCheckAt.Equal(before.NextCheckAt) || r.NextCheckID != before.NextCheckID {
			t.Errorf("next check was at %v by %s, got %v by %s",
				before.NextCheckAt, before.NextCheckID, r.NextCheckAt, r.NextCheckID)
		}
		a.serveFor(6 * time.Minute)
		a.wantEnd(in, "heartbeat timeout")
	})
}

// The pending state of an activity cannot be written for half an hour. An activity with WaitForCancellation is released
// to its queue, because a copy must not report the end while a caller holds the token. Any other activity becomes
// pending.
func TestR26_pendingStateCannotBeWritten_awaitedActivityIsReleased(t *testing.T) {
	t.Parallel()
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprint("waited ", waited), func(t *testing.T) {
			t.Parallel()
			withTokenHub(t, simhub.Options{}, func(_ context.Context, a *tokenHub) {
				until := time.Now().Add(30 * time.Minute)
				a.interfere(func(_ context.Context, c simaws.Call, next func() error) error {
					if u, ok := c.Input.(*dynamodb.UpdateItemInput); ok &&
						strings.Contains(*u.UpdateExpression, "#pendingOf") && time.Now().Before(until) {
						return errors.New("refused")
					}
					return next()
				})
				in := a.begin(question{Waited: waited})
				a.serveFor(10 * time.Minute)
				if p := a.retryOf(in).Pending; p == nil != waited {
					t.Errorf("after ten minutes: got pending %+v", p)
				}
				a.serveFor(time.Hour)
				if p := a.retryOf(in).Pending; p == nil {
					t.Error("activity is not pending")
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

// The worker stops an activity at the end of its invocation, before the activity is reported as pending. Another worker
// may then have the activity, so it runs again, and the second run becomes pending.
func TestR26_stoppedByWorker_runsAgainBeforePending(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{InvocationLimit: time.Minute}, func(_ context.Context, a *tokenHub) {
		in := a.start("awaits-approval", question{Takes: 55 * time.Second, Once: true})
		a.serveFor(30 * time.Minute)
		runs := a.passedTokens()
		if len(runs) != 2 || runs[0].token != runs[1].token {
			t.Fatalf("got runs %+v, want 2 with the same token", runs)
		}
		if p := a.retryOf(in).Pending; p == nil || p.Since.Before(runs[1].at) {
			t.Errorf("got pending %+v, want since the second run at %v", p, runs[1].at)
		}
		if err := a.complete(1, "the second"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Minute)
		a.wantEnd(in, "the second")
		a.checkIdle()
	})
}

// A process crashes, or a call fails, at any call of an activity that times out, is retried, sends heartbeats and is
// completed. The result is the same.
func TestR26_crashAtAnyCallOfPendingActivity_endsTheSame(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(n int64) (simaws.Interceptor, func() int64){
		"crash before": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.CrashAt(n, false)
			return i, c.Load
		},
		"crash after": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.CrashAt(n, true)
			return i, c.Load
		},
		"fails": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.FailAt(n, false)
			return i, c.Load
		},
		"response lost": func(n int64) (simaws.Interceptor, func() int64) {
			i, c := simhub.FailAt(n, true)
			return i, c.Load
		},
	} {
		for _, q := range []question{
			{Heartbeat: 10 * time.Minute, Every: time.Minute, StartToClose: 3 * time.Hour},
			{Heartbeat: 10 * time.Minute, Every: time.Minute, Waited: true},
		} {
			t.Run(fmt.Sprint(name, " ", q.Waited), func(t *testing.T) {
				t.Parallel()
				for n, more := int64(1), true; more; n += shortrun.Step(crashStep) {
					intercept, calls := fault(n)
					withTokenHub(t, simhub.Options{
						Environments: 2, Intercept: intercept,
					}, func(_ context.Context, a *tokenHub) {
						a.timeOutThenComplete(n, q)
					})
					more = calls() >= n && !t.Failed()
				}
			})
		}
	}
}

// timeOutThenComplete lets the first attempt time out, keeps the second open for a while, and completes it.
func (a *tokenHub) timeOutThenComplete(n int64, q question) {
	in := a.start("awaits-approval", q)
	a.serveFor(40 * time.Minute)
	runs := a.passedTokens()
	last := runs[len(runs)-1]
	if last.attempt > 3 || last.attempt < 2 {
		a.t.Errorf("call %d: got runs %+v, want attempt 2 or 3 last", n, runs)
	}
	token := func() string { runs := a.passedTokens(); return runs[len(runs)-1].token }
	a.repeatCall(func() error { _, err := a.client.HeartbeatActivity(a.t.Context(), token(), "there"); return err })
	a.serveFor(time.Minute)
	a.repeatCall(func() error { return a.client.CompleteActivity(a.t.Context(), token(), "in the end") })
	a.serveFor(12 * time.Hour)
	end, err := a.Provider.ReadTerminalEvent(a.t.Context(), in.ExecutionID)
	if err != nil || !strings.Contains(string(end.Output), "in the end") &&
		!strings.Contains(string(end.Output), "timeout") {
		a.t.Errorf("call %d: ended with %s, error %v", n, end.Output, err)
	}
	times := map[int]int{}
	for _, r := range a.passedTokens() {
		if times[r.attempt]++; times[r.attempt] > 2 || r.attempt > 3 {
			a.t.Errorf("call %d: attempt %d ran %d times", n, r.attempt, times[r.attempt])
		}
	}
	if err := a.CheckIdle(a.t.Context()); err != nil {
		a.t.Errorf("call %d: %v", n, err)
	}
}

// repeatCall retries a call like a token holder.
func (a *tokenHub) repeatCall(call func() error) {
	for range 20 {
		err := call()
		if _, updateResult := errors.AsType[*client.TokenError](err); err == nil || updateResult {
			return
		}
		a.serveFor(5 * time.Second)
	}
	a.t.Error("call failed 20 times")
}

// Every timer message is sent twice, and there is still one timer, one attempt at a time, and one outcome.
func TestR26_timersSentTwice_changeNothing(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{Environments: 2}, func(ctx context.Context, a *tokenHub) {
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
		a.heartbeatForMinutes(ctx, a.token(0), 30)
		if n := len(a.passedTokens()); n != 1 {
			t.Errorf("got %d runs, want 1", n)
		}
		a.serveFor(8 * time.Minute)
		if n := len(a.passedTokens()); n != 2 || a.retryOf(in).Attempt != 2 {
			t.Errorf("got %d runs, want 2; retry state %+v", n, a.retryOf(in))
		}
		if err := a.complete(1, "once"); err != nil {
			t.Fatal(err)
		}
		a.serveFor(time.Hour)
		a.wantEnd(in, "once")
		a.checkIdle()
	})
}

// All queues are lost. A reconciliation continues from the table, and preserves the timeouts of a pending attempt.
func TestR26_reconciliation_keepsTimeoutsOfAPendingAttempt(t *testing.T) {
	t.Parallel()
	withTokenHub(t, simhub.Options{}, func(ctx context.Context, a *tokenHub) {
		in := a.begin(question{StartToClose: time.Hour})
		a.Close()
		reg := perdure.NewRegistry()
		perdure.AddActivity(reg, "approve", a.approve)
		perdure.AddOrchestration(reg, "awaits-approval", awaitApproval)
		second, err := simhub.New(simhub.Options{Registry: reg, On: a.Hub, NewQueues: "second-"})
		if err != nil {
			t.Fatal(err)
		}
		a.Hub, a.client = second, client.New(second.Provider)
		if _, err := second.Provider.ReconcileInstance(ctx, in.InstanceID,
			provider.ReconcileOptions{Run: "r-1"}); err != nil {
			t.Fatal(err)
		}
		a.serveFor(50 * time.Minute)
		a.wantOpen(in)
		if n := len(a.passedTokens()); n != 1 {
			t.Errorf("got %d runs, want 1", n)
		}
		a.serveFor(15 * time.Minute)
		a.wantEnd(in, "start-to-close")
	})
}

// pendingTimeout is the start-to-close timeout of the single attempt of hands-over.
const pendingTimeout = 12 * time.Hour

// waitsForToken waits for an activity that the test completes by its token. If late is set, the first attempt times
// out and the second is completed.
func waitsForToken(ctx *perdure.OrchestrationContext, late bool) (string, error) {
	opts := []perdure.ActivityCallOption{perdure.WithStartToCloseTimeout(pendingTimeout)}
	if late {
		opts = []perdure.ActivityCallOption{
			perdure.WithStartToCloseTimeout(5 * time.Minute),
			perdure.WithRetry(perdure.RetryPolicy{InitialInterval: time.Minute}),
		}
	}
	return perdure.CallActivityByName[string](ctx, "hand-over", late, opts...).Await(ctx)
}

// completedMeanwhile completes activity 3 of an instance.
func completedMeanwhile(h *hub, in provider.Instance) { completeLater(h, in, 1, 3) }

// completeLater completes an activity after seven minutes with the token of the current attempt. It repeats its
// calls like a caller that got no response.
func completeLater(h *hub, in provider.Instance, segment, activityID int64) {
	c, begun := client.New(h.Provider), time.Now()
	call := func(attempt int) error {
		w := provider.WorkItem{
			InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Segment: segment, ActivityID: activityID,
			Attempt: attempt, Queue: "default",
		}
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
