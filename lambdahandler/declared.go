package lambdahandler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// declared are the schedules that a stack declares (PERDURE_SCHEDULES). A renewer puts each that is not as it is declared, once in the life of its
// process: so one that is changed by hand stays so until a process begins.
type declared struct {
	client *client.Client

	mu   sync.Mutex
	left []schedule.Schedule // that have not been seen to
	bad  error
}

// declaredSchedules reads them. What cannot be read is no reason for the hub's timers to stand still: it is the error of each look.
func declaredSchedules(c *client.Client, doc string) *declared {
	d := &declared{client: c}
	if doc == "" {
		return d
	}
	read := json.NewDecoder(bytes.NewBufferString(doc))
	read.DisallowUnknownFields()
	if err := read.Decode(&d.left); err != nil {
		d.left, d.bad = nil, fmt.Errorf("lambdahandler: PERDURE_SCHEDULES: %w", err)
	}
	for i := range d.left {
		d.left[i].Revision = revisionOf(&d.left[i])
	}
	return d
}

// revisionOf tells one declaration of a schedule from another.
func revisionOf(s *schedule.Schedule) string {
	doc, err := json.Marshal(s)
	if err != nil {
		doc = []byte(err.Error()) // its input is no JSON, which the put says
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:16])
}

// timeToDeclare bounds what a look spends on it: the watch has its own work.
const timeToDeclare = 10 * time.Second

// see puts what is not there as it is declared, and returns what failed, which the next look tries again.
func (d *declared) see(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeToDeclare)
	defer cancel()

	errs := []error{d.bad}
	var left []schedule.Schedule
	for _, s := range d.left {
		if err := d.put(ctx, &s); err != nil {
			left, errs = append(left, s), append(errs, err)
		}
	}
	d.left = left
	return errors.Join(errs...)
}

// put leaves a schedule alone that was put with this revision before, whatever a person has done with it since.
func (d *declared) put(ctx context.Context, s *schedule.Schedule) error {
	there, err := d.client.Schedule(ctx, s.ID)
	switch {
	case err == nil && there.Schedule.Revision == s.Revision:
		return nil
	case err != nil && !errors.Is(err, client.ErrNotFound):
		return err
	}
	return d.client.PutSchedule(ctx, *s)
}
