package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/shortrun"
	"github.com/perdure/perdure/tests/e2e/app"
)

// The reader of a stream receives the events of a turn within a second, also after pauses in which the API polls
// rarely. The time starts before the commit, at the time of the turn, and ends when the reader has the event.
func TestStream_openDuringTurns_sendsEventsWithinASecond(t *testing.T) {
	shortrun.Skip(t)
	const instances, steps = 10, 10
	api := listeningAPI(t)
	var mu sync.Mutex
	var late []time.Duration
	var reading sync.WaitGroup
	for n := range instances {
		naps := app.Naps{Count: steps, Each: time.Duration(n+1) * 150 * time.Millisecond}
		if _, err := hub.client.Start(t.Context(), "naps", naps, client.WithInstanceID(id(t, n))); err != nil {
			t.Fatal(err)
		}
		reading.Go(func() {
			own, err := lateEvents(t.Context(), api+"/instances/"+id(t, n)+"/events/stream")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			late = append(late, own...)
		})
	}
	reading.Wait()

	if len(late) < instances*steps/2 { // a turn can have several results, and the first ones precede the stream
		t.Fatalf("got %d turns while the streams were open", len(late))
	}
	slices.Sort(late)
	p99 := late[len(late)*99/100]
	t.Logf("from a turn to the reader of its stream, %d turns: p50 %v, p99 %v, max %v", len(late), late[len(late)/2],
		p99, late[len(late)-1])
	// allows for a busy machine
	if limit := 1500 * time.Millisecond; p99 > limit {
		t.Errorf("p99 is %v, want at most %v", p99, limit)
	}
}

// lateEvents reads a stream until its end. It returns the time from each turn to the arrival of its first event, except
// for turns before the stream.
func lateEvents(ctx context.Context, url string) (late []time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for event := ""; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "event":
			event = value
		case name != "data":
		case event == "end":
			return late, nil
		case event == string(history.TurnStarted):
			var e history.Event
			if err := json.Unmarshal([]byte(value), &e); err != nil {
				return nil, err
			}
			if e.Time.After(began) {
				late = append(late, time.Since(e.Time))
			}
		}
	}
	return nil, errors.Join(errors.New("the stream has no end"), lines.Err())
}

// listeningAPI runs the API of the hub as a process outside Lambda, and returns its URL.
func listeningAPI(t *testing.T) (url string) {
	t.Helper()
	binary := t.TempDir() + "/api"
	if err := goBuild(t.Context(), binary, "./app/functions/api"); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), binary)
	process.Env = append(os.Environ(), "PERDURE_HUB=e2e", "PERDURE_LISTEN=127.0.0.1:0")
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	log, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	served := make(chan string, 1)
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		serving := regexp.MustCompile(`event=api\.serving .*url=(\S+)`)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				served <- m[1]
			}
		}
	}()
	t.Cleanup(func() { // after the end of the context
		<-printed
		if err := process.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the API: %v", err)
		}
	})
	select {
	case url = <-served:
	case <-printed:
		t.Fatal("the API did not start")
	}
	return url
}
