package lambdahandler

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/schedule"
)

// declaredSchedules creates the schedules that a stack declares (PERDURE_SCHEDULES). Once per process, it puts each
// schedule whose declaration has changed. A manual change of a schedule remains until the declaration changes.
type declaredSchedules struct {
	client *client.Client

	mu       sync.Mutex
	pending  []schedule.Schedule // declared schedules that were not put yet
	parseErr error
}

// newDeclaredSchedules parses the declarations. If they are invalid, each sweep returns the error. The function still
// starts, because timers must fire.
func newDeclaredSchedules(c *client.Client, doc string) *declaredSchedules {
	d := &declaredSchedules{client: c}
	if doc == "" {
		return d
	}
	read := json.NewDecoder(bytes.NewBufferString(doc))
	read.DisallowUnknownFields()
	err := read.Decode(&d.pending)
	if _, end := read.Token(); err == nil && !errors.Is(end, io.EOF) {
		err = errors.New("text follows the list of schedules")
	}
	if err != nil {
		d.pending, d.parseErr = nil, fmt.Errorf("lambdahandler: PERDURE_SCHEDULES: %w", err)
	}
	for i := range d.pending {
		d.pending[i].Revision = revisionOf(&d.pending[i])
	}
	return d
}

// revisionOf returns a hash of a declaration.
func revisionOf(s *schedule.Schedule) string {
	doc, err := json.Marshal(s)
	if err != nil {
		doc = []byte(err.Error()) // the input is not JSON; putOne returns the error
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:16])
}

// declareTimeout is the time limit of putAll. The remaining time of the invocation is for the sweep.
const declareTimeout = 10 * time.Second

// putAll puts the pending schedules and returns the errors of schedules that failed. The next call retries these
// schedules.
func (d *declaredSchedules) putAll(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, declareTimeout)
	defer cancel()

	errs := []error{d.parseErr}
	var failed []schedule.Schedule
	for _, s := range d.pending {
		if err := d.putOne(ctx, &s); err != nil {
			failed, errs = append(failed, s), append(errs, err)
		}
	}
	d.pending = failed
	return errors.Join(errs...)
}

// putOne puts a schedule, unless the stored schedule already has this revision.
func (d *declaredSchedules) putOne(ctx context.Context, s *schedule.Schedule) error {
	existing, err := d.client.Schedules().Get(ctx, s.ID)
	switch {
	case err == nil && existing.Schedule.Revision == s.Revision:
		return nil
	case err != nil && !errors.Is(err, client.ErrNotFound):
		return err
	}
	return d.client.Schedules().Put(ctx, *s)
}
