package dispatch_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/idset"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// deliveries observes each batch that is passed to a function, and checks its processing against the state at that
// time.
type deliveries struct {
	h *hub // nil disables the checks

	mu sync.Mutex
	// pointless contains the attempts that a process must not run, with the reason, by process name.
	pointless map[string]map[handed]string
	most      int // largest number of deliveries of a message
	// once counts the starts of attempts that must start at most once.
	once map[handed]int
	errs []error
}

// handed identifies an attempt of an activity in a batch.
type handed struct {
	executionID string
	activityID  int64
	attempt     int
}

func newDeliveries() *deliveries {
	return &deliveries{pointless: map[string]map[handed]string{}, once: map[handed]int{}}
}

// see observes a call before it is made.
func (d *deliveries) see(c simaws.Call) {
	batch, ok := c.Input.([]sqstypes.Message)
	if !ok || c.Operation != "Invoke" || d.h == nil {
		return
	}
	pointless, fresh := map[handed]string{}, map[handed]bool{}
	for i := range batch {
		n, _ := strconv.Atoi(batch[i].Attributes["ApproximateReceiveCount"])
		d.checkDeliveryRate(&batch[i], n)
		item, err := wire.DecodeWorkItem(*batch[i].Body)
		if err != nil || item.ActivityID == 0 {
			continue
		}
		of := handed{item.ExecutionID, item.ActivityID, item.Attempt}
		d.expectOnce(of, item.AtMostOnce)
		if n == 1 && item.Attempt == 1 && !item.PossibleDuplicate && item.NotBefore == nil {
			fresh[of] = true // a first delivery causes no read
		} else if why := d.pointlessReason(&item); why != "" {
			pointless[of] = why
		}
	}
	for of := range fresh {
		delete(pointless, of) // its copy cannot be distinguished
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pointless[*batch[0].ReceiptHandle] = pointless
}

// A message may have several immediate deliveries, and then one per interval. A hundred deliveries then take a quarter
// of an hour if processes crash repeatedly, and a night if errors are handled.
const (
	deliveriesAtOnce = 5
	oneDeliveryIn    = 10 * time.Second
)

// checkDeliveryRate checks that a message does not use up its deliveries too fast (R19).
func (d *deliveries) checkDeliveryRate(m *sqstypes.Message, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, _ := strconv.ParseInt(m.Attributes["ApproximateFirstReceiveTimestamp"], 10, 64)
	age := time.Since(time.UnixMilli(first))
	d.most = max(d.most, n)
	if most := deliveriesAtOnce + int(age/oneDeliveryIn); n > most {
		d.errs = append(d.errs, fmt.Errorf("R19: a message had %d deliveries in %v: %s", n, age, *m.Body))
	}
}

// pointlessReason returns the reason for which a redelivered activity must not run, according to history and its retry
// state, or "".
func (d *deliveries) pointlessReason(item *provider.WorkItem) string {
	ctx := context.Background()
	settled, err := d.h.Provider.ReadSettled(ctx, item.ExecutionID, 0)
	if err != nil {
		return ""
	}
	var ids idset.Set
	for _, r := range settled.IDs {
		ids = ids.Add(r)
	}
	for _, r := range settled.Cancelled {
		if !item.WaitForCancellation {
			ids = ids.Add(r)
		}
	}
	switch current, err := d.h.Provider.ReadRetry(ctx, item.ExecutionID, item.ActivityID); {
	case settled.Ended:
		return "its execution had ended"
	case ids.Has(item.ActivityID):
		return "it had been settled"
	case item.Retry != nil && err == nil && current.Attempt > 0 && current.Attempt != item.Attempt:
		return fmt.Sprintf("attempt %d was the current one", current.Attempt)
	}
	return ""
}

// expectOnce records an attempt that must start at most once.
func (d *deliveries) expectOnce(of handed, once bool) {
	if !once {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.once[of] += 0
}

// begins checks each activity whose code starts. An activity that had ended before its redelivery must not run (R14),
// and an at-most-once attempt starts once (R32).
func (d *deliveries) begins(ctx context.Context) {
	name, died := simhub.Process(ctx)
	a := perdure.ActivityInfoFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	of := handed{a.ExecutionID, a.ActivityID, a.Attempt}
	if n, once := d.once[of]; once {
		if d.once[of] = n + 1; n > 0 {
			d.errs = append(d.errs, fmt.Errorf("R32: activity #%d attempt %d of %s started again in delivery %d",
				a.ActivityID, a.Attempt, a.ExecutionID, a.DeliveryCount))
		}
	}
	if why := d.pointless[name][of]; why != "" && !died {
		d.errs = append(d.errs, fmt.Errorf("R14: activity #%d attempt %d of %s started in delivery %d although %s",
			a.ActivityID, a.Attempt, a.ExecutionID, a.DeliveryCount, why))
	}
}
